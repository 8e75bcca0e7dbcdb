"""Existing outputs, from any harness, judged by the criteria that need no reference."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netproof.benchmarks import outputs, registry
from netproof.benchmarks.interface import ONE_WAY, Function
from netproof.criteria import Finding, Level
from netproof.criteria.findings import FLAGGED, Above, Bounds, figure, rate_in_words
from netproof.criteria.interface import CaseCurves, Layer
from netproof.criteria.rate import LARGEST_FROM, OF_LINE
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, RELATIVE
from netproof.criteria.settings import Settings
from netproof.criteria.shape import DeclineSettings
from netproof.errors import NetproofError, shortened
from netproof.intake import loading
from netproof.measurement.curve import Curve, median_curve
from netproof.measurement.landmarks import Landmarks
from netproof.measurement.links import INSIDE, Link, Transport
from netproof.verdict import engine
from netproof.verdict.exit_status import CANNOT, FAILED, INCONCLUSIVE, PASSED

BENCHMARK, LAUNCH = "benchmark", "launch"
NO_CONFIGURATION = (BENCHMARK, LAUNCH)
"""Names in a pattern that do not distinguish configurations: benchmark and launch."""

FILE_COLUMN = "file"
"""Column of a list that names files."""

LEAST_OF_LINE = (0.8, 0.5)
"""Shares of the line rate below which large messages one way between nodes warn, and fail.

Half is what a card in a slot with half of its lanes gives, or a path through one of two rails.
"""
LARGE = 64 * 1024
"""Bytes of a message that is large."""
DECLINE = DeclineSettings(1.25, 10.0, alone=1.5)
"""How many times the best rate is that of the largest messages: an order of magnitude fails."""
DIFFER = Above(0.5)
"""Share by which one of two configurations is slower that warns; any less is noted."""
RANKS_APART = 5.0
"""Ratio of the slowest rank to the fastest one from which on it has a sentence."""
LIE_APART = Bounds(1.25)
"""Ratio of launches that are each steady that warns."""
OF_MEMORY_US = 1.0
"""The fastest networks take 0.8 µs or more for a message; less is shared memory, or nearly."""

_DEVICE = re.compile(r"\b(?:CUDA|ROCM|OPENACC|ZE|SYCL|DEVICE)\b", re.IGNORECASE)
_NAME = re.compile(r"\{([^{}]*)\}|(\*)")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([MG])(?:bit/s|bps)?", re.IGNORECASE)


@dataclass(frozen=True)
class CurveKind:
    """Kind of a curve: curves of the same kind can be compared.

    ``named``: the user's name of the benchmark, since a file of NetPIPE does not distinguish TCP
    from MPI; ``groups``, ``group``: how many ran at once with IMB's ``-multi``, and which this is;
    ``ranks``: None where not printed; ``remark``: what else distinguishes it.
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
        """Return the words for a sentence."""
        return registry.named(self.benchmark).kind(self, self.named)


@dataclass(frozen=True)
class CurveVerdict:
    """Launches of one kind in one configuration, and their findings.

    ``curve``: the median of ``launches``, a curve of each of ``files``.
    """

    configuration: str
    kind: CurveKind
    files: tuple[str, ...]
    launches: tuple[Curve, ...]
    curve: Curve
    landmarks: Landmarks
    findings: tuple[Finding, ...] = ()

    @property
    def noted(self) -> tuple[Finding, ...]:
        """Findings that are worth a sentence, although nothing is flagged."""
        return (
            tuple(
                finding
                for finding in self.findings
                if finding.level in (Level.PASS, Level.SHOWN) and _worth_a_note(finding)
            )
            + self._ranks_apart()
        )

    def _ranks_apart(self) -> tuple[Finding, ...]:
        """Return a sentence on ranks that lie far apart, which one that leaves early explains."""
        spread = self.rank_spread
        if spread is None or spread < RANKS_APART:
            return ()
        columns = zip(self.curve.sizes, self.curve.time_us, self.curve.time_min_us, strict=True)
        size, slowest, fastest = max(
            (one for one in columns if one[2] > 0), key=lambda one: one[1] / one[2]
        )
        reason = (
            f"at {size} bytes the slowest rank took {figure(slowest)} µs, {spread:.3g} times the"
            f" {figure(fastest)} µs of the fastest; the root of a collective may leave early"
        )
        where = f"{self.configuration} {self.kind}"
        return (Finding("rank spread", Level.SHOWN, where, reason, size=size, value=spread),)

    @property
    def times_are_shares(self) -> bool:
        """Whether a time is a message's share of a window of them, and no latency."""
        function = _function(self.kind)
        several = function is not None and (function.pair or function.pairs)
        return several and function.rated and not function.single

    @property
    def share(self) -> float | None:
        """Share of the line rate: by the line through its largest sizes, or by the largest."""
        of_line = (
            finding.value
            for finding in self.findings
            if finding.criterion == OF_LINE and finding.value is not None
        )
        return next(of_line, self.landmarks.line_rate_share)

    @property
    def rank_spread(self) -> float | None:
        """The most that the slowest rank's time is of the fastest one's; None without these."""
        if self.curve.time_min_us is None:
            return None
        columns = zip(self.curve.time_us, self.curve.time_min_us, strict=True)
        return max((slowest / least for slowest, least in columns if least > 0), default=None)

    @property
    def level(self) -> Level:
        """Level of the worst finding."""
        found = {finding.level for finding in self.findings}
        order = (Level.FAIL, Level.INCONCLUSIVE, Level.UNDEFINED, Level.WARN)
        return next((level for level in order if level in found), Level.PASS)


@dataclass(frozen=True)
class FilesVerdict:
    """All curves of the files.

    ``faults``: what could not be read or used, ``notes``: what was left out, a sentence each.
    """

    curves: tuple[CurveVerdict, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

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
        stated = rate.strip()
        example = f"{stated}G or {stated}M" if stated.isdecimal() else "100G or 1000M"
        raise NetproofError(f"--link {rate}: give a rate in bit/s with its unit, {example}")
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
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    of_time = option == "--fail-above"
    if not 0 < value <= (math.inf if of_time and found[2] else 1):
        of = "the other's time, 10% or 0.1" if of_time else "the line rate, 90% or 0.9"
        raise NetproofError(f"{option} {text}: give a share of {of}")
    return value


class Pattern:
    """Pattern of names in paths: ``{system}-{mpi}/{benchmark}``, compared with paths' ends.

    A name stands for one or more characters but ``/``, ``*`` for any of them; an extension of the
    file may follow. Raises NetproofError for a pattern without a name or with one twice.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        parts, at = [], 0
        for found in _NAME.finditer(text):
            parts.append(re.escape(text[at : found.start()]))
            at = found.end()
            if found[2]:
                parts.append(r"[^/]*")
                continue
            if not found[1].isidentifier():
                raise NetproofError(f"--as {text}: {found[0]} is no name: letters, digits, _")
            if found[1] in self.names:
                raise NetproofError(f"--as {text}: {found[0]} stands there twice")
            self.names.append(found[1])
            parts.append(rf"(?P<{found[1]}>[^/]+?)")
        if not set(self.names) - set(NO_CONFIGURATION):
            raise NetproofError(
                f"--as {text}: names no part of a configuration, as {{system}}-{{mpi}} does"
            )
        parts.append(re.escape(text[at:]))
        self._pattern = re.compile(rf"(?:.*/)?{''.join(parts)}(?:\.[A-Za-z][A-Za-z0-9]*)*")

    def of(self, path: Path) -> tuple[str, str]:
        """Return a file's configuration and benchmark; NetproofError where it does not fit."""
        found = self._pattern.fullmatch(str(path))
        if not found:
            raise NetproofError(f"{path}: does not fit --as {self.text}")
        parts = [found[name] for name in self.names if name not in NO_CONFIGURATION]
        return " ".join(parts), found[BENCHMARK] if BENCHMARK in self.names else ""


class NameList:
    """A list of files as CSV: a column ``file``, the others being parts of the configuration.

    Paths are relative to the list's folder. Raises NetproofError for any other content.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            rows = list(csv.DictReader(io.StringIO(loading.read_text(path)), strict=True))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise NetproofError(f"{path}: cannot be read: {shortened(str(error))}") from error
        self._names: dict[Path, tuple[str, str]] = {}
        for number, row in enumerate(rows, 2):
            name = row.pop(FILE_COLUMN, None)
            if not name or None in row or None in row.values():
                raise NetproofError(
                    f"{path}:{number}: a list has a column {FILE_COLUMN!r}, others that name the"
                    " configuration, and a value for each"
                )
            parts = [str(value) for key, value in row.items() if key not in NO_CONFIGURATION]
            if not any(parts):
                raise NetproofError(f"{path}:{number}: {name} has no configuration")
            place = (path.parent / name).resolve()
            self._names[place] = " ".join(filter(None, parts)), str(row.get(BENCHMARK, ""))
        if not self._names:
            raise NetproofError(f"{path}: names no file")

    def of(self, path: Path) -> tuple[str, str]:
        """Return a file's configuration and benchmark; NetproofError where it is not listed."""
        try:
            return self._names[path.resolve()]
        except KeyError as error:
            raise NetproofError(f"{path}: is not in {self.path}") from error


def judge(
    paths: Sequence[Path],
    *,
    named: Pattern | NameList | None = None,
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
    in place of ``LEAST_OF_LINE``. ``baseline``: the configuration that scores are relative to.
    ``fail_above``: the share by which one of two configurations is slower that fails.
    """
    found: dict[tuple[str, CurveKind], list[tuple[str, Curve, tuple[int, ...]]]] = {}
    faults: list[str] = []
    notes: dict[str, None] = {}
    for path in paths:
        try:
            configuration, called = (str(path), "") if named is None else named.of(path)
            text = outputs.text_of(path)
            log = outputs.read(text, str(path), bidirectional=bidirectional, form=form)
        except NetproofError as error:
            faults.append(str(error))
            continue
        faults += log.faults
        notes |= dict.fromkeys(log.notes)
        for benchmark, one in log.printed():
            kind = CurveKind(
                benchmark,
                one.function,
                one.ranks,
                one.direction,
                one.groups,
                one.group,
                called,
                one.remark,
            )
            try:
                curve = one.curve()
            except NetproofError as error:
                faults.append(str(error))
                continue
            below = registry.least_for(kind.benchmark, kind.function, kind.ranks or 0)
            if curve.sizes[0] < below <= curve.sizes[-1]:
                curve = curve.beginning_at(below)
                notes[
                    f"{kind}: messages below {below} bytes were left out: not every rank has a"
                    " part of them"
                ] = None
            found.setdefault((configuration, kind), []).append((str(path), curve, one.at_least))
    curves: dict[str, CurveVerdict] = {}
    cases: list[CaseCurves] = []
    for (configuration, kind), several in found.items():
        try:
            case = _case(configuration, kind, several, link, _settings(kind, link, least_share))
        except NetproofError as error:
            files = ", ".join(file for file, *_ in several)
            faults.append(f"{configuration} {kind} ({files}): {error}")
            continue
        if fail_above is not None:
            slower = Above(min(DIFFER.warn, fail_above), fail_above)
            case = replace(case, settings=replace(case.settings, slower=slower))
        cases.append(case)
        findings = _short(case, [*engine.findings_of(case, case.settings)])
        findings = [_with_others(one, case, findings) for one in findings]
        curves[case.where] = CurveVerdict(
            configuration,
            kind,
            tuple(file for file, *_ in several),
            case.launches,
            case.curve,
            case.landmarks,
            tuple(_advised(one, case, link) for one in findings),
        )
    if named is not None:
        # What is too fast to be true is no yardstick.
        sound = {
            case.where: case
            for case in cases
            if not any(map(_impossible, curves[case.where].findings))
        }
        base = {case.where for case in sound.values() if case.name == baseline}
        for finding in engine.compare(sound.values(), base, scored=baseline is not None):
            one = curves[finding.where]
            # One alone is compared with none.
            if finding.before is None:
                against = baseline if finding.criterion in RELATIVE else finding.against
                more = _advised(finding, sound[finding.where], link, sound.get(finding.against))
                more = replace(more, against=against)
                curves[finding.where] = replace(one, findings=(*one.findings, more))
    known = {one.configuration for one in curves.values()}
    if baseline is not None and baseline not in known:
        there = ", ".join(sorted(known)) or "none"
        faults.append(f"--baseline {baseline}: no configuration has that name; there are: {there}")
    judged = tuple(map(_judged_otherwise, curves.values()))
    return FilesVerdict(judged, tuple(faults), tuple(notes))


def _function(kind: CurveKind) -> Function | None:
    """Return the function of a kind; None for one that has no name."""
    benchmark = registry.named(kind.benchmark)
    functions = (*benchmark.functions, *benchmark.only_read)
    return next((one for one in functions if one.name == kind.function), None)


def _settings(kind: CurveKind, link: Link | None, least: float | None) -> Settings:
    """Return the settings for curves of a kind: a run's, and what files alone are judged by."""
    function, own = _function(kind), Settings()
    direction = kind.direction if function is None else function.direction
    inside = link is not None and link.transport in INSIDE
    warn_below = fail_below = None
    if least is not None:
        fail_below = least or None
    elif direction == ONE_WAY and not inside:
        warn_below, fail_below = LEAST_OF_LINE
    of_line = replace(own.line_rate, warn_below=warn_below, fail_below=fail_below, of_files=True)
    return replace(own, line_rate=of_line, decline=DECLINE, slower=DIFFER, apart=LIE_APART)


def _case(
    configuration: str,
    kind: CurveKind,
    several: Sequence[tuple[str, Curve, tuple[int, ...]]],
    link: Link | None,
    settings: Settings,
) -> CaseCurves:
    """Return what criteria may use of curves in files: no counters, nodes or references.

    ``several``: the file of each launch, its curve, and the sizes whose rate it prints as 0.
    """
    launches = tuple(curve for _, curve, _ in several)
    curve, line_rate = median_curve(launches), None
    # With more ranks it is not known which messages crossed the link.
    if link is not None and kind.ranks == 2 and kind.groups == 1:
        line_rate = registry.link_factor(kind.benchmark, kind.function) * link.line_rate_mb_s()
    if curve.sizes[-1] < LARGE:
        only_too_fast = replace(settings.line_rate, warn_below=None, fail_below=None)
        settings = replace(settings, line_rate=only_too_fast)
    return CaseCurves.of_launches(
        f"{configuration} {kind}",
        launches,
        line_rate,
        layer=_layer(kind, curve, link),
        ranks=kind.ranks or 0,
        at_least=tuple((launch, size) for _, launch, sizes in several for size in sizes),
        settings=settings,
        name=configuration,
        function=(kind,),
    )


def _layer(kind: CurveKind, curve: Curve, link: Link | None) -> Layer:
    """Return what the times of a curve are likely of, for advice."""
    function = _function(kind)
    if _DEVICE.search(kind.remark):
        return Layer.DEVICE
    if link is not None and kind.ranks == 2:
        return Layer.INSIDE if link.transport in INSIDE else Layer.NETWORK
    rated = function is None or function.rated
    shares = function is not None and function.rated and not function.single
    if not shares and 0 < min(curve.time_us) < OF_MEMORY_US:
        return Layer.INSIDE
    return Layer.NETWORK if rated or function.pair or function.pairs else Layer.COLLECTIVE


def _short(case: CaseCurves, findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with one on what takes more sizes than there are, in place of several."""
    sizes = [size for size in case.curve.sizes if size >= case.settings.curves.least_size]
    short = [finding for finding in findings if _takes_more(finding, len(sizes))]
    if not short:
        return [*findings]
    if not sizes:
        reason = "messages of 4 bytes or more are judged, and it has none"
    elif len(sizes) == 1:
        place = case.curve.sizes.index(sizes[0])
        smaller = " of 4 bytes or more" if place else ""
        reason = f"one size{smaller}, {sizes[0]} bytes in {figure(case.curve.time_us[place])} µs"
        if case.curve.bandwidth_mb_s is not None:
            reason += f", {rate_in_words(case.curve.bandwidth_mb_s[place])}"
    else:
        names = ", ".join(finding.criterion for finding in short)
        reason = f"{len(sizes)} sizes of 4 bytes or more are too few for: {names}"
    first = replace(short[0], reason=reason)
    return [first if one is short[0] else one for one in findings if one not in short[1:]]


def _takes_more(finding: Finding, sizes: int) -> bool:
    """Check whether a finding is undefined since there are so few sizes."""
    along = finding.level is Level.UNDEFINED and finding.size is None
    criterion = BY_FINDING[finding.criterion]
    return along and criterion.compare is None and sizes < max(criterion.fewest_sizes, 1)


def _judged_otherwise(judged: CurveVerdict) -> CurveVerdict:
    """Return a short curve as far as its link or another configuration judges it."""
    asserted = (Level.PASS, Level.WARN, Level.FAIL)
    sizes = sum(size >= Bounds().least_size for size in judged.curve.sizes)
    elsewhere = any(
        finding.level in asserted
        and (BY_FINDING[finding.criterion].compare or BY_FINDING[finding.criterion].of_measurement)
        for finding in judged.findings
    )

    def weighed(finding: Finding) -> Finding:
        if not _takes_more(finding, sizes):
            return finding
        if elsewhere:
            return finding.ruled(Level.SHOWN)
        advice = ": compare it with --as" if sizes == 1 else ""
        large = judged.curve.sizes[-1] >= LARGEST_FROM and judged.curve.bandwidth_mb_s is not None
        if advice and large and judged.kind.ranks == 2:
            advice += ", or give its --link"
        return replace(finding, reason=finding.reason + advice)

    return replace(judged, findings=tuple(map(weighed, judged.findings)))


def _with_others(finding: Finding, case: CaseCurves, findings: Sequence[Finding]) -> Finding:
    """Return a finding with all flagged sizes, where it is the only one of several sizes."""
    criterion = BY_FINDING[finding.criterion]
    alone = sum(one.criterion == finding.criterion for one in findings) == 1
    if criterion.at_sizes is None or not alone or finding.level not in FLAGGED:
        return finding
    bounds = engine.bounds_of(finding.criterion, case.settings)
    at_each = criterion.at_sizes(criterion.read(case.first, bounds))
    flagged = [one.size for one in at_each if bounds.level(one.value)[0] in FLAGGED]
    return replace(finding, others=tuple(size for size in flagged if size != finding.size))


def _impossible(finding: Finding) -> bool:
    """Check whether a finding shows a rate that nothing carries."""
    too_high = finding.value is not None and finding.value > 1
    return BY_FINDING[finding.criterion].of_measurement and finding.level is Level.FAIL and too_high


def _worth_a_note(finding: Finding) -> bool:
    """Check whether a finding that is not flagged has a sentence."""
    criterion = BY_FINDING[finding.criterion]
    if finding.value is None:
        return finding.own_level is Level.UNDEFINED and criterion.fewest_sizes > 1
    return criterion.noted is not None and criterion.noted.level(finding.value)[0] is Level.WARN


def _value_at(launch: Curve, finding: Finding) -> float:
    """Return a criterion's value of one launch at the size of a finding."""
    criterion = BY_FINDING[finding.criterion]
    points = criterion.read(launch, Bounds())
    at_each = {one.size: one.value for one in criterion.at_sizes(points)}
    return at_each[finding.size]


def _advised(
    finding: Finding, case: CaseCurves, link: Link | None, against: CaseCurves | None = None
) -> Finding:
    """Add what files do not show: repeats, several launches, another transport."""
    flagged = finding.level in FLAGGED
    sides = [case, *([against] if against is not None else [])]
    alone = all(len(one.launches) == 1 for one in sides)
    noted = finding.level is Level.PASS and _worth_a_note(finding)
    criterion, said = BY_FINDING[finding.criterion], []
    if flagged and finding.criterion in CONFIRMED_BY_MEASURING:
        said.append("it was not measured again")
    if criterion.of_measurement:
        too_high = finding.value is not None and finding.value > 1 and link is not None
        if too_high and (flagged or finding.level is Level.INCONCLUSIVE):
            others = " or ".join(one for one in Transport if one is not link.transport)
            said.append(f"if the MTU is not {link.mtu}, say --mtu")
            said.append(f"if it is not {link.transport}, say --transport {others}")
    elif alone and criterion.compare is None and finding.value and (flagged or noted):
        said.append("one launch was made: repeat it")
    elif noted and criterion.noted is not None and criterion.at_sizes is not None:
        again = sum(_value_at(launch, finding) < criterion.noted.warn for launch in case.launches)
        said.append(f"so it is in {again} of {len(case.launches)} launches")
    elif alone and flagged and criterion.noted is None:
        said.append("one launch was made of each: repeat them")
    return replace(finding, reason="; ".join([finding.reason, *said]))
