"""Existing outputs, from any harness, judged by the criteria that need no reference."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netproof.benchmarks import outputs, registry
from netproof.benchmarks.interface import ONE_WAY
from netproof.criteria import Finding, Level
from netproof.criteria.interface import CaseCurves
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, RELATIVE
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError, shortened
from netproof.intake import loading
from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import Landmarks, landmarks
from netproof.measurement.launches import median_curve
from netproof.measurement.links import Link
from netproof.measurement.transports import Transport
from netproof.verdict import engine
from netproof.verdict.exit_status import CANNOT, FAILED, INCONCLUSIVE, PASSED

BENCHMARK, LAUNCH = "benchmark", "launch"
NO_CONFIGURATION = (BENCHMARK, LAUNCH)
"""Names in a pattern that do not distinguish configurations: benchmark and launch."""

FILE_COLUMN = "file"
"""Column of a list that names files."""

_NAME = re.compile(r"\{([^{}]*)\}|(\*)")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([MG])(?:bit/s|bps)?", re.IGNORECASE)

WARN_BELOW, FAIL_BELOW = 0.8, 0.5
"""Shares of a link's line rate that large messages one way reach on any sound network.

Half is what a card in a slot with half of its lanes gives, or a path through one of two rails.
"""


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
    mbit_s = float(found[1]) * (1 if found[2].upper() == "M" else 1000)
    bytes_ = transport.usual_mtu if mtu is None else mtu
    of_nodes = Link(mbit_s, bytes_, transport)
    try:
        of_nodes.line_rate_mb_s()
    except NetproofError as error:
        raise NetproofError(f"--mtu {mtu}: {error}") from error
    return of_nodes


def share(text: str) -> float:
    """Return the share that ``90%`` or ``0.9`` says. Raises NetproofError for any other."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(%?)", text.strip())
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < value <= 1:
        raise NetproofError(f"--least {text}: give a share of the line rate, 90% or 0.9")
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
    link: Link | None = None,
    least_share: float | None = None,
    baseline: str | None = None,
    settings: Settings | None = None,
) -> FilesVerdict:
    """Judge the curves of output files by the criteria that need no reference.

    ``named``: names the configurations; None takes each file as one, and compares none.
    Several files of one configuration and kind are its launches. ``bidirectional``: how NetPIPE
    was run. ``link``: of each node; with it two ranks are compared with its line rate: one way a
    share below ``least_share`` fails; without that one below ``FAIL_BELOW`` fails, and one below
    ``WARN_BELOW`` warns.
    ``baseline``: the configuration that scores are relative to.
    """
    settings = settings or Settings()
    found: dict[tuple[str, CurveKind], list[tuple[str, Curve, tuple[int, ...]]]] = {}
    faults: list[str] = []
    notes: dict[str, None] = {}
    for path in paths:
        try:
            configuration, called = (str(path), "") if named is None else named.of(path)
            log = outputs.read(outputs.text_of(path), str(path), bidirectional=bidirectional)
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
            least = registry.least_for(kind.benchmark, kind.function, kind.ranks or 0)
            if curve.sizes[0] < least <= curve.sizes[-1]:
                curve = curve.beginning_at(least)
                notes[
                    f"{kind}: messages below {least} bytes were left out: not every rank has a"
                    " part of them"
                ] = None
            found.setdefault((configuration, kind), []).append((str(path), curve, one.at_least))
    curves: dict[str, CurveVerdict] = {}
    cases: list[CaseCurves] = []
    for (configuration, kind), several in found.items():
        try:
            own = _of_link(settings, kind, link, least_share)
            case = _case(configuration, kind, several, link, own)
        except NetproofError as error:
            files = ", ".join(file for file, *_ in several)
            faults.append(f"{configuration} {kind} ({files}): {error}")
            continue
        cases.append(case)
        curves[case.where] = CurveVerdict(
            configuration,
            kind,
            tuple(file for file, *_ in several),
            case.launches,
            case.curve,
            case.landmarks,
            tuple(_advised(one, link) for one in engine.findings_of(case, case.settings)),
        )
    if named is not None:
        base = {case.where for case in cases if case.name == baseline}
        for finding in engine.compare(cases, base, scored=baseline is not None):
            one = curves[finding.where]
            # One alone is compared with none.
            if finding.before is None:
                against = baseline if finding.criterion in RELATIVE else finding.against
                more = replace(finding, against=against)
                curves[finding.where] = replace(one, findings=(*one.findings, more))
    known = {one.configuration for one in curves.values()}
    if baseline is not None and baseline not in known:
        there = ", ".join(sorted(known)) or "none"
        faults.append(f"--baseline {baseline}: no configuration has that name; there are: {there}")
    return FilesVerdict(tuple(curves.values()), tuple(faults), tuple(notes))


def _of_link(
    settings: Settings, kind: CurveKind, link: Link | None, least: float | None
) -> Settings:
    """Return the settings with the least shares of a link, for what goes one way."""
    both = kind.direction != ONE_WAY or registry.link_factor(kind.benchmark, kind.function) != 1
    if link is None or both:
        return settings
    warn, fail = (WARN_BELOW, FAIL_BELOW) if least is None else (None, least)
    bounds = replace(settings.line_rate, warn_below=warn, fail_below=fail)
    return replace(settings, line_rate=bounds)


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
    return CaseCurves(
        f"{configuration} {kind}",
        curve,
        curve,
        launches,
        landmarks(curve, line_rate, launches=launches if len(launches) > 1 else ()),
        line_rate if curve.bandwidth_mb_s is not None else None,
        at_least=tuple((launch, size) for _, launch, sizes in several for size in sizes),
        settings=settings,
        name=configuration,
        function=(kind,),
    )


def _advised(finding: Finding, link: Link | None) -> Finding:
    """Mark a flag that a run would have measured again, and a share that is above TCP's."""
    flagged, more = finding.level in (Level.WARN, Level.FAIL), ""
    if flagged and finding.criterion in CONFIRMED_BY_MEASURING:
        more = "; it was not measured again"
    too_high = finding.value is not None and finding.value > 1
    counts = flagged or finding.level is Level.INCONCLUSIVE
    if BY_FINDING[finding.criterion].of_measurement and too_high and counts and link is not None:
        if link.transport is Transport.TCP:
            # RDMA has less overhead per packet.
            others = " or ".join(one for one in Transport if one is not Transport.TCP)
            more += f"; for MPI over RDMA say --transport {others}"
        more += f"; if the MTU is not {link.mtu}, say --mtu"
    return replace(finding, reason=finding.reason + more)
