"""Existing outputs, from any harness, judged by the criteria that need no reference."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from netproof.benchmarks import outputs, registry
from netproof.benchmarks.collectives import OF_ONE_RANK
from netproof.benchmarks.interface import ONE_WAY, Function, MpiBenchmark
from netproof.criteria import Finding, Level
from netproof.criteria.consistency import LAUNCHES
from netproof.criteria.findings import (
    FLAGGED,
    Above,
    Bounds,
    figure,
    ranges_in_words,
    rate_in_words,
    then,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Layer
from netproof.criteria.rate import LARGEST_FROM, OF_LINE, LineRateSettings
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, RELATIVE
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError, ParseError, grouped, listed
from netproof.measurement.case import Curve, median_curve
from netproof.measurement.links import INSIDE, Link, Transport
from netproof.verdict import CANNOT, FAILED, INCONCLUSIVE, PASSED, engine
from netproof.verdict.file_names import LAUNCH, NameList, Pattern, Sets, differing_in_a_number

ONLY_TOO_FAST = LineRateSettings()
OF_FILES = replace(ONLY_TOO_FAST, warn_below=0.8, fail_below=0.5)
"""Shares of the line rate, the lower ones of large messages one way between nodes.

Half is what a card in a slot with half of its lanes gives, or a path through one of two rails.
"""
LARGE = 64 * 1024
"""Bytes of a message that is large."""
DECLINE = Bounds(1.25, 10.0)
"""How many times the best rate is that of the largest messages: an order of magnitude fails."""
DIFFER = 0.5
"""Share by which one of two configurations is slower that warns; any less is noted."""
RANKS_APART = 5.0
"""Ratio of the slowest rank to the fastest one from which on it has a sentence."""
LIE_APART = Bounds(1.25)
"""Ratio of launches that are each steady that warns."""
OF_MEMORY_US = 1.0
"""The fastest networks take 0.8 µs or more for a message; less is shared memory, or nearly."""

LAUNCHES_ARE_NAMED = "if they are launches of one configuration, say so: --as '{}'"
"""How files that look like launches are said to be some."""

Named = Pattern | NameList | Sets
"""Source of a file's configuration."""

_DEVICE = re.compile(r"\b(?:CUDA|ROCM|OPENACC|ZE|SYCL|DEVICE)\b", re.IGNORECASE)
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([MGmg])(?:[Bb]it/s|bps)?")


@dataclass(frozen=True)
class CurveKind:
    """Kind of a curve: curves of the same kind can be compared.

    ``named``: the user's name of the benchmark, since a file of NetPIPE does not distinguish TCP
    from MPI; otherwise as in a ``Table``.
    """

    benchmark: str
    function: str
    ranks: int | None
    direction: str
    groups: int = 1
    group: int | None = None
    named: str = ""
    remark: str = ""

    def __str__(self) -> str:
        """Return ``IMB Alltoall 16 ranks in 2 groups, group 1`` or ``NetPIPE tcp oneway``."""
        of = registry.named(self.benchmark)
        if of.by_protocol:
            return " ".join(filter(None, (of.label, self.named, self.direction)))
        ranks = "" if self.ranks is None else f" {self.ranks} ranks"
        several = "" if self.groups == 1 else f" in {self.groups} groups"
        which = "" if self.group is None else f", group {self.group}"
        remark = f", {self.remark}" if self.remark else ""
        called = f" ({self.named})" if self.named else ""
        return f"{of.title(self.function)}{ranks}{several}{which}{remark}{called}"

    @property
    def known(self) -> Function | None:
        """Return its function; None for one that has no name."""
        return registry.named(self.benchmark).known(self.function)


@dataclass(frozen=True)
class CurveVerdict:
    """Launches of one kind in one configuration, a curve of each of ``files``, and findings.

    ``yardstick``: others are compared with it, and it is not judged itself.
    """

    case: CaseCurves
    kind: CurveKind
    files: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    yardstick: bool = False

    @property
    def noted(self) -> tuple[Finding, ...]:
        """Findings that are worth a sentence, although nothing is flagged."""
        shown = (Level.PASS, Level.SHOWN)
        noted = [one for one in self.findings if one.level in shown and _worth_a_note(one)]
        spread, size = self.rank_spread or (0.0, 0)
        if spread >= RANKS_APART:
            slowest = self.case.curve.time_us[self.case.curve.sizes.index(size)]
            reason = (
                f"at {size} bytes the slowest rank took {figure(slowest)} µs, {spread:.3g} times"
                f" the {figure(slowest / spread)} µs of the fastest; a rank leaves a"
                " collective once it has its part"
            )
            where = self.case.where
            noted.append(Finding("rank spread", Level.SHOWN, where, reason, size, spread))
        return tuple(noted)

    @property
    def times_are_shares(self) -> bool:
        """Whether a time is a message's share of a window of them, and no latency."""
        function = self.kind.known
        paired = function is not None and (function.pair or function.pairs)
        return paired and _is_share(function)

    @property
    def share(self) -> float | None:
        """Share of the line rate: by the line through its largest sizes, or by the largest."""
        shares = (one.value for one in self.findings if one.criterion == OF_LINE)
        of_line = (share for share in shares if share is not None)
        return next(of_line, self.case.landmarks.line_rate_share)

    @property
    def rank_spread(self) -> tuple[float, int] | None:
        """The most that the slowest rank's time is of the fastest one's, and at how many bytes."""
        curve = self.case.curve
        if curve.time_min_us is None:
            return None
        columns = zip(curve.time_us, curve.time_min_us, curve.sizes, strict=True)
        spreads = [(slowest / least, -size) for slowest, least, size in columns if least > 0]
        spread, size = max(spreads, default=(0.0, 0))
        return (spread, -size) if spreads else None

    @property
    def level(self) -> Level:
        """Level of the worst finding; of a yardstick that serves as one ``SHOWN``."""
        found = {finding.level for finding in self.findings}
        order = (Level.FAIL, Level.INCONCLUSIVE, Level.UNDEFINED, Level.WARN)
        sound = Level.SHOWN if self.yardstick else Level.PASS
        return next((level for level in order if level in found), sound)


@dataclass(frozen=True)
class FilesVerdict:
    """All curves of the files.

    ``faults``: what could not be read or used, ``notes``: what was left out, a sentence each;
    ``folded``: the faults, files with one extension and fault being one;
    ``compared``: whether configurations were named.
    """

    curves: tuple[CurveVerdict, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()
    compared: bool = False
    folded: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """Exit status: 1 if a curve fails, 2 if none was read, 3 if some is undecided, else 0."""
        levels = {one.level for one in self.curves}
        if Level.FAIL in levels:
            return FAILED
        if not self.curves:
            return CANNOT
        if self.faults or levels & {Level.INCONCLUSIVE, Level.UNDEFINED}:
            return INCONCLUSIVE
        return PASSED


def link(rate: str, mtu: int | None, transport: Transport) -> Link:
    """Return the link of a rate such as ``100G`` or ``40000M``.

    ``mtu``: None takes the usual one of the transport. Raises NetproofError for another form of
    rate, and for an MTU that the transport does not have.
    """
    found = _RATE.fullmatch(rate.strip())
    if not found or float(found[1]) <= 0:
        reason = "give a rate in bit/s with its unit, 100G or 1000M"
        raise NetproofError(f"--link {rate}: {reason}")
    if mtu is not None and transport is Transport.SHARED_MEMORY:
        raise NetproofError(f"--mtu {mtu}: shared memory has none")
    mbit_s = float(found[1]) * (1 if found[2].upper() == "M" else 1000)
    bytes_ = transport.usual_mtu if mtu is None else mtu
    of_nodes = Link(mbit_s, bytes_, transport)
    try:
        of_nodes.line_rate_mb_s()
    except NetproofError as error:
        raise NetproofError(f"--mtu {mtu}: {error}") from error
    return of_nodes


def share(text: str, option: str = "--least") -> float:
    """Return the share that ``90%`` or ``0.9`` says. Raises NetproofError for any other.

    ``--fail-above`` may be more than 100 %, with its sign: 10 would be taken for ten times.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(%?)", text.strip())
    of_time, percent = option == "--fail-above", text.strip().endswith("%")
    value = float(found[1]) / (100 if percent else 1) if found else 0.0
    if not 0 < value <= (math.inf if of_time and percent else 1):
        of = "the other's time, 10% or 0.1" if of_time else "the line rate, 90% or 0.9"
        raise NetproofError(f"{option} {text}: give a share of {of}")
    return value


_FromFile = tuple[str, Curve, tuple[int, ...]]
"""The file of a launch, its curve, and the sizes in bytes whose rate it prints as 0."""
_Launches = dict[tuple[str, CurveKind], list[_FromFile]]
"""Launches by configuration and kind."""


def _read(
    paths: Sequence[Path], named: Named | None, bidirectional: bool, form: outputs.Form | None
) -> tuple[_Launches, dict[tuple[str, str], list[str]], dict[str, None]]:
    """Return the launches by configuration and kind, what could not be read, and what to note.

    Faults are by the files' extension and by reason.
    """
    found: _Launches = {}
    faults: dict[tuple[str, str], list[str]] = defaultdict(list)
    notes: dict[str, None] = {}
    for path in paths:
        try:
            configuration, called = (str(path), "") if named is None else named.of(path)
            text = outputs.text_of(path)
            log = outputs.read(text, str(path), bidirectional=bidirectional, form=form)
        except NetproofError as error:
            reason = error.reason if isinstance(error, ParseError) else str(error)
            faults[path.suffix, reason].append(str(error))
            continue
        for fault in log.faults:
            faults["", fault].append(fault)
        notes |= dict.fromkeys(log.notes)
        for benchmark, one in log.printed():
            kind = CurveKind(
                *(benchmark, one.function, one.ranks, one.direction),
                *(one.groups, one.group, called, one.remark),
            )
            try:
                curve = one.curve()
            except NetproofError as error:
                faults["", str(error)].append(str(error))
                continue
            below = kind.known.least_for(kind.ranks or 0) if kind.known else 0
            if curve.sizes[0] < below <= curve.sizes[-1]:
                curve = curve.within(below)
                reason = "left out: not every rank has a part of them"
                notes[f"{kind}: messages below {below} bytes were {reason}"] = None
            found.setdefault((configuration, kind), []).append((str(path), curve, one.at_least))
    return found, faults, notes


def _named_where_needed(
    found: _Launches, paths: Sequence[Path], notes: dict[str, None]
) -> _Launches:
    """Return launches by kinds without the names of files, unless a set has several of a kind."""
    bare = {kind: replace(kind, named="") for _, kind in found}
    count = Counter((configuration, bare[kind]) for configuration, kind in found)
    several = {kind for (_, kind), number in count.items() if number > 1}
    # A launch alone fits the name of every file.
    patterns = map(Pattern, (*differing_in_a_number(paths), f"{{{LAUNCH}}}"))
    fitting = next(one.text for one in patterns if all(map(one.fits, paths)))
    for kind in several:
        notes[
            f"{kind}: several files of a set are compared by their names; if they are launches, say"
            f" so: --as '{fitting}'"
        ] = None
    return {
        (configuration, kind if bare[kind] in several else bare[kind]): launches
        for (configuration, kind), launches in found.items()
    }


def judge(
    paths: Sequence[Path],
    *,
    named: Named | None = None,
    bidirectional: bool = False,
    form: outputs.Form | None = None,
    link: Link | None = None,
    least_share: float | None = None,
    baseline: str | None = None,
    fail_above: float | None = None,
) -> FilesVerdict:
    """Judge the curves of output files by the criteria that need no reference.

    ``named``: names the configurations; None takes each file as one, and compares none.
    Several files of one configuration and kind are its launches. ``bidirectional``: how NetPIPE
    was run; ``form``: of tables that do not name their test. ``link``: of each node; with it two
    ranks are compared with its line rate, and ``least_share`` is that of it below which they fail,
    in place of those of ``OF_FILES``.
    ``baseline``: the configuration that scores are relative to; of ``Sets`` it is the second, of
    which nothing else is judged. ``fail_above``: the share by which one of two configurations is
    slower that fails.
    """
    found, alike, notes = _read(paths, named, bidirectional, form)
    faults = [*chain.from_iterable(alike.values())]
    folded = [
        first + (f"; so are {len(others)} more files *{suffix}" if others else "")
        for (suffix, _), (first, *others) in alike.items()
    ]
    unread = len(faults)
    yardstick = None
    if isinstance(named, Sets):
        yardstick = baseline = named.against
        if named.by_name:
            found = _named_where_needed(found, paths, notes)
    compared = 0 if named is None else len({configuration for configuration, _ in found})
    differ = Above(DIFFER if fail_above is None else min(DIFFER, fail_above), fail_above)
    of_line = None if least_share is None else replace(ONLY_TOO_FAST, fail_below=least_share)
    curves: dict[str, CurveVerdict] = {}
    for (configuration, kind), several in found.items():
        files = tuple(file for file, *_ in several)
        slower = Above() if configuration == yardstick else differ
        try:
            case = _case(configuration, kind, several, link, of_line, slower, compared)
        except NetproofError as error:
            faults.append(f"{configuration} {kind} ({', '.join(files)}): {error}")
            continue
        along = engine.findings_of(case)
        counts = Counter(one.criterion for one in along)
        findings = tuple(
            _advised(_with_others(case, one) if counts[one.criterion] == 1 else one, case, link)
            for one in along
            if configuration != yardstick or _impossible(one)
        )
        curves[case.where] = CurveVerdict(case, kind, files, findings, configuration == yardstick)
    # What is too fast to be true is no yardstick.
    sound = {
        where: one.case for where, one in curves.items() if not any(map(_impossible, one.findings))
    }
    base = {where for where, case in sound.items() if case.name == baseline}
    more: dict[str, list[Finding]] = defaultdict(list)
    for finding in engine.compare(sound.values(), base, scored=baseline is not None):
        case, criterion = sound[finding.where], BY_FINDING[finding.criterion]
        # One alone is compared with none.
        if finding.before is None and (case.name != yardstick or criterion.noted is not None):
            against = baseline if finding.criterion in RELATIVE else finding.against
            advised = _advised(finding, case, link, sound.get(finding.against or ""))
            more[case.where].append(replace(advised, against=against))
    if named is not None:
        _compare_sizes(curves, more, notes, yardstick)
    known = {one.case.name for one in curves.values()}
    if baseline not in (None, yardstick, *known):
        there = ", ".join(sorted(known)) or "none"
        faults.append(f"--baseline {baseline}: no configuration has that name; there are: {there}")
    judged = [replace(one, findings=(*one.findings, *more[where])) for where, one in curves.items()]
    if named is None:
        patterns = []
        for text, group in differing_in_a_number(paths).items():
            launches = judge(
                group,
                named=Pattern(text),
                bidirectional=bidirectional,
                form=form,
                link=link,
                least_share=least_share,
            )
            same, failing = _if_launches(launches, text, judged)
            patterns += [text] * (same and not failing)
            judged += failing
        if patterns:
            others = f", and {len(patterns) - 1} more such patterns" if patterns[1:] else ""
            notes[
                "files whose names differ in a number were judged one by one;"
                f" {LAUNCHES_ARE_NAMED.format(patterns[0])}{others}"
            ] = None
    return FilesVerdict(
        tuple(map(_in_short, judged)),
        tuple(faults),
        tuple(notes),
        compared=named is not None,
        folded=(*folded, *faults[unread:]),
    )


def _if_launches(
    launches: FilesVerdict, pattern: str, judged: Sequence[CurveVerdict]
) -> tuple[bool, list[CurveVerdict]]:
    """Return whether files measured the same, and what fails only if they are launches of one.

    It is not known that they are: failures are inconclusive.
    """
    failing, alike = [], False
    for one in launches.curves:
        several = [
            each.level for each in judged if each.kind == one.kind and {*each.files} < {*one.files}
        ]
        alike |= len(several) > 1
        if len(several) > 1 and one.level is Level.FAIL and Level.FAIL not in several:
            how = [LAUNCHES_ARE_NAMED.format(pattern)]
            findings = tuple(finding.without_noise(how, "") for finding in one.findings)
            failing.append(replace(one, findings=findings))
    return alike, failing


def _compare_sizes(
    curves: dict[str, CurveVerdict],
    more: dict[str, list[Finding]],
    notes: dict[str, None],
    yardstick: str | None,
) -> None:
    """Add to ``more`` what is not compared with the yardstick, and to ``notes`` the sizes."""
    by_kind = grouped((one.kind, one) for one in curves.values())
    for kind, sides in by_kind.items():
        by_sizes = grouped((tuple(one.case.curve.sizes), one.case.name) for one in sides)
        if len(by_sizes) > 1:
            counts = " and ".join(
                f"{len(own)} of {listed(names)}, {own[0]} to {own[-1]} bytes"
                for own, names in by_sizes.items()
            )
            common = len(set.intersection(*map(set, by_sizes)))
            notes[f"{kind}: only {common} sizes are common to {counts}"] = None
        if yardstick is None:
            continue
        case, other, why = sides[0].case, sides[-1].case, ""
        own, least = case.curve.sizes, case.settings.slower.least_size
        beyond = [one for one in other.curve.sizes if least <= one < own[0] or one > own[-1]]
        if len(sides) == 1:
            why = f"only {case.name} has it, so it is not compared"
        elif any(map(_impossible, sides[1].findings)):
            why = f"{other.name} is too fast to be true, and no yardstick"
        elif beyond:
            which = ranges_in_words(beyond, other.curve.sizes)
            why = f"{other.name} also has {which}, which are not compared: measure them, or give"
            why += " another yardstick"
        if why:
            more[case.where].append(replace(undefined("slower", case.where, why), reason=why))


def _is_share(function: Function | None) -> bool:
    """Check whether a time is one message's share of several."""
    return function is not None and function.rated and not function.single


def _case(
    configuration: str,
    kind: CurveKind,
    several: Sequence[_FromFile],
    link: Link | None,
    of_line: LineRateSettings | None,
    slower: Above,
    compared: int,
) -> CaseCurves:
    """Return what criteria may use of curves in files: no counters, nodes or references.

    ``of_line``: bounds of the share of the line rate that the user set; ``compared``: how many
    configurations there are to compare, 0 for none. Where the ranks ran is not known.
    """
    launches, function = tuple(curve for _, curve, _ in several), kind.known
    curve, line_rate = median_curve(launches), None
    # With more ranks it is not known which messages crossed the link.
    if link is not None and kind.ranks == 2 and kind.groups == 1:
        line_rate = (function.link_factor if function else 1.0) * link.line_rate_mb_s()
    between = link is not None and link.transport not in INSIDE
    direction = kind.direction if function is None else function.direction
    if of_line is None:
        of_line = OF_FILES if between and direction == ONE_WAY else ONLY_TOO_FAST
    # On other numbers of ranks, those that leave early may take any time.
    stays = function is not None and function.collective not in ("", *OF_ONE_RANK)
    grows = stays and bool(kind.ranks) and kind.groups == 1 and len(launches) >= LAUNCHES
    return CaseCurves.of_launches(
        f"{configuration} {kind}",
        launches,
        line_rate,
        ranks=kind.ranks or 0,
        ranks_per_node=0,
        ping_pong=between and function is not None and function.ping_pong,
        at_least=tuple((launch, size) for _, launch, sizes in several for size in sizes),
        of_files=_stands_for_line(function),
        layer=_layer(kind, function, curve, link),
        settings=replace(
            Settings(),
            line_rate=of_line if curve.sizes[-1] >= LARGE else ONLY_TOO_FAST,
            decline=DECLINE,
            slower=slower,
            apart=LIE_APART,
        ),
        name=configuration,
        function=(
            *(kind.benchmark, kind.function, (kind, "" if compared else configuration)),
            *("inter-node", kind.direction),
        ),
        configuration=(kind.named, kind.remark, configuration),
        # Of two, the ranges in which one is slower say more.
        place=("files",) if compared > 2 and len(launches) > 1 else (),
        on_link=int(grows),
    )


def _stands_for_line(function: Function | None) -> int:
    """Return the bytes of a message whose own rate stands for that of the line.

    Messages that follow each other hide their latency.
    """
    return LARGE if function is not None and function.streams else LARGEST_FROM


def _layer(kind: CurveKind, function: Function | None, curve: Curve, link: Link | None) -> Layer:
    """Return what the times of a curve are likely of, for advice.

    Without a link, shares of a time of MPI do not show where its ranks ran.
    """
    if _DEVICE.search(kind.remark):
        return Layer.DEVICE
    if link is not None and (kind.ranks == 2 or link.transport in INSIDE):
        return Layer.INSIDE if link.transport in INSIDE else Layer.NETWORK
    if not _is_share(function) and 0 < min(curve.time_us) < OF_MEMORY_US:
        return Layer.INSIDE
    if function is None:
        return Layer.NETWORK if kind.ranks == 2 else Layer.COLLECTIVE
    if not (function.rated or function.pair or function.pairs):
        return Layer.COLLECTIVE
    of_mpi = isinstance(registry.named(kind.benchmark), MpiBenchmark)
    return Layer.UNKNOWN if link is None and of_mpi and _is_share(function) else Layer.NETWORK


def _in_short(judged: CurveVerdict) -> CurveVerdict:
    """Return one finding on what takes more sizes than there are, in place of several.

    It does not count where the link or another configuration judges the curve.
    """
    case, findings = judged.case, judged.findings
    sizes = [size for size in case.curve.sizes if size >= case.settings.curves.least_size]
    short = [
        one
        for one in findings
        if one.level is Level.UNDEFINED
        and one.size is None
        and not BY_FINDING[one.criterion].compare
        and len(sizes) < BY_FINDING[one.criterion].fewest_sizes
    ]
    if not short:
        return judged
    reason = "messages of 4 bytes or more are judged, and it has none"
    if len(sizes) > 1:
        names = ", ".join(finding.criterion for finding in short)
        reason = f"{len(sizes)} sizes of 4 bytes or more are too few for: {names}"
    elif sizes:
        place = case.curve.sizes.index(sizes[0])
        smaller = " of 4 bytes or more" if place else ""
        reason = f"one size{smaller}, {sizes[0]} bytes in {figure(case.curve.time_us[place])} µs"
        if case.curve.bandwidth_mb_s is not None:
            reason += f", {rate_in_words(case.curve.bandwidth_mb_s[place])}"
    decided = (Level.PASS, Level.INCONCLUSIVE, *FLAGGED)
    several = [BY_FINDING[one.criterion] for one in findings if one.level in decided]
    elsewhere = any(one.compare or one.of_measurement for one in several)
    if not elsewhere and len(sizes) == 1:
        reason += ": compare it with --against"
        large = case.curve.sizes[-1] >= _stands_for_line(judged.kind.known)
        if large and case.curve.bandwidth_mb_s is not None and case.ranks == 2:
            reason += ", or give its --link"
    first = replace(short[0], reason=reason)
    if elsewhere:
        first = first.ruled(Level.SHOWN)
    kept = (first if one is short[0] else one for one in findings if one not in short[1:])
    return replace(judged, findings=tuple(kept))


def _with_others(case: CaseCurves, finding: Finding) -> Finding:
    """Return the only finding of its criterion with all flagged sizes, if it is of single ones."""
    if finding.level not in FLAGGED or not (criterion := BY_FINDING[finding.criterion]).at_sizes:
        return finding
    bounds = criterion.bounds_in(case.settings, inside=False)
    values = criterion.at_each(bounds, case.first)
    flagged = [size for size, (value, _) in values.items() if bounds.level(value)[0] in FLAGGED]
    return replace(finding, others=tuple(size for size in flagged if size != finding.size))


def _impossible(finding: Finding, *levels: Level) -> bool:
    """Check whether a finding of one of the levels, a failure, shows what nothing carries."""
    of_line = BY_FINDING[finding.criterion].of_measurement and (finding.value or 0) > 1
    return of_line and finding.level in (levels or (Level.FAIL,))


def _worth_a_note(finding: Finding) -> bool:
    """Check whether a finding that is not flagged has a sentence."""
    criterion = BY_FINDING[finding.criterion]
    if finding.value is None:
        return finding.own_level is Level.UNDEFINED and criterion.fewest_sizes > 1
    return criterion.noted is not None and criterion.noted.level(finding.value)[0] is Level.WARN


def _advised(
    finding: Finding, case: CaseCurves, link: Link | None, against: CaseCurves | None = None
) -> Finding:
    """Add what files do not show: repeats, several launches, another transport."""
    flagged = finding.level in FLAGGED
    alone = all(len(one.launches) == 1 for one in (case, against) if one is not None)
    noted = finding.level is Level.PASS and _worth_a_note(finding)
    criterion = BY_FINDING[finding.criterion]
    said: list[str] = []
    if flagged and finding.criterion in CONFIRMED_BY_MEASURING:
        said.append("it was not measured again")
    if criterion.of_measurement:
        if link is not None and _impossible(finding, *FLAGGED, Level.INCONCLUSIVE):
            transports = " or ".join(one for one in Transport if one is not link.transport)
            said.append(
                f"if the MTU is not {link.mtu}, say --mtu; if it is not {link.transport}, say"
                f" --transport {transports}"
            )
    elif alone and criterion.compare is None and finding.value and (flagged or noted):
        said.append("one launch was made: repeat it")
    elif noted and criterion.noted is not None and criterion.at_sizes is not None:
        at = finding.size or 0
        values = [criterion.at_each(Bounds(), launch)[at][0] for launch in case.launches]
        again = sum(criterion.noted.level(value)[0] in FLAGGED for value in values)
        said.append(f"so it is in {again} of {len(case.launches)} launches")
    elif alone and flagged and criterion.noted is None:
        said.append("one launch was made of each: repeat them")
    return replace(finding, reason=finding.reason + "".join(map(then, said)))
