"""Material of a report: a judged session, charts, key figures, nodes, and how to repeat it."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from netproof.benchmarks import registry
from netproof.comparison.comparison import Against, alone, envelope_of_cases
from netproof.criteria.rate import OF_LINE_RATE
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError, grouped, listed
from netproof.history.selection import Quantity
from netproof.measurement.case import Case
from netproof.pairs.accusation import State
from netproof.present.document import Block, Cell, DataTable, Sentences
from netproof.present.html import content, figures
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.content import Group
from netproof.present.wording import (
    columns,
    counted,
    file_name,
    number,
    readable,
    size_in_words,
    sparkline,
)
from netproof.session.measured import Measured
from netproof.session.node_facts import Node
from netproof.session.provenance import KIND_CONFIGURATION, KIND_REFERENCES, Provenance
from netproof.site import slurm
from netproof.verdict import engine, judge, limits, session_verdict
from netproof.verdict.limits import TIME_AT, Limits
from netproof.verdict.references import Entries
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict, Verdict

if TYPE_CHECKING:
    # With what reads a store, pyarrow and duckdb, which takes half a second.
    from netproof.history.series import Nights

MAIN = "index.html"
"""File of the page to begin at."""
STUDIES = "studies.html"
"""File of the page on earlier studies."""
HTML, CSV = "html", "csv"
FORMATS = (HTML, "png", "svg", "pdf", CSV)


@dataclass(frozen=True)
class Report:
    """A judged session and what its pages take of it.

    ``formats``: of ``FORMATS``; ``command``: that made the report; ``switch``: the partition with a
    page against the others, None for the only measured one beside stored others; ``power``: with
    changes that would have failed; ``nights``: series of its stored sessions, None without a store.
    Raises NetproofError where two charts would have one name, and as ``alone`` for the switch.
    """

    judged: JudgedSession
    formats: Sequence[str] = (HTML,)
    command: str = ""
    switch: str | None = None
    power: bool = False
    nights: Nights | None = None

    def __post_init__(self) -> None:
        """Refuse what has no report before anything is written."""
        _ = self.groups, self.against

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups of cases, in the order in which the verdict first has them."""
        return content.groups(self.judged.verdict)

    @cached_property
    def against(self) -> Against | None:
        """One switch against the others, None where the report is not on one."""
        return alone(self.judged.session, self.judged.verdict, self.switch)

    @property
    def files(self) -> list[str]:
        """Suffixes that every chart has a file of."""
        return [name for name in self.formats if name != HTML]

    @property
    def against_page(self) -> str:
        """File of the page on the switch that is compared with the others; empty without one."""
        return f"{file_name('switch', self.against[0])}.html" if self.against else ""

    @property
    def system(self) -> str:
        """The system that was judged."""
        return self.judged.matrix.cases[0].system

    @cached_property
    def partition_pages(self) -> dict[str, str]:
        """Files of the partitions' pages; none where one page has all of them."""
        names = dict.fromkeys(group.partition for group in self.groups if group.partition)
        return {name: f"{file_name('partition', name)}.html" for name in names}

    @cached_property
    def links(self) -> dict[tuple[object, ...], str]:
        """Links to the cases' charts, by the cases' keys."""
        return {one.case.key(): group.link for group in self.groups for one in group.members}

    @cached_property
    def looks(self) -> Looks:
        """Looks of all partitions and environments, those of stored results last."""
        stored = self.judged.verdict.stored_cases
        every: list[CaseVerdict] = [*self.judged.verdict.cases, *stored]
        places = tuple(dict.fromkeys(map(content.switch, every)))
        environments = dict.fromkeys(one.case.environment for one in every)
        return Looks(places, tuple(environments), tuple(map(content.switch, stored)))

    @cached_property
    def _envelopes(self) -> dict[tuple[object, ...], tuple[dict[int, tuple[float, str]], bool]]:
        found = {}
        for key, several in grouped((engine.group(one.case), one) for one in self.groups).items():
            cases = {content.label(one): one for group in several for one in group.every}
            found[key] = envelope_of_cases(cases, self.judged.matrix)
        return found

    @cached_property
    def _entries(self) -> Entries:
        try:
            return session_verdict.references_of(self.judged.matrix)
        except NetproofError:
            return lambda case: {}

    def limits(self, case: Case) -> dict[str, Limits]:
        """Return today's references of a case that bound something, by their variables."""
        try:
            return limits.of_case(self._entries, case)
        except NetproofError:
            # The verdict says what is wrong with them.
            return {}

    def figure(self, group: Group) -> ChartFigure:
        """Return time over size of a group."""
        least, unlike_links = self._envelopes[engine.group(group.case)]
        bounds = {
            (content.configuration(one.case), int(name.removeprefix(TIME_AT))): bound
            for one in group.members
            for name, bound in self.limits(one.case).items()
            if name.startswith(TIME_AT)
        }
        return figures.of_time(group, least, self.looks, bounds, unlike_links=unlike_links)

    @cached_property
    def netpipe(self) -> dict[tuple[str, str, str], list[CaseVerdict]]:
        """NetPIPE's cases by path, direction and partition."""
        return grouped(
            ((one.case.path, one.case.direction, one.case.partition), one)
            for one in self.judged.verdict.cases
            if registry.of(one.case).by_protocol
        )

    def pair(self, key: tuple[str, str, str]) -> list[ChartFigure]:
        """Return NetPIPE's throughput and signature of a path, direction and partition."""
        several = self.netpipe[key]
        found = (self.limits(one.case).get("asymptotic_mb_s") for one in several)
        bounds = {one for one in found if one is not None}
        return figures.of_netpipe(key, several, self.judged.matrix, self.looks, bounds)

    @cached_property
    def maps(self) -> Mapping[str, list[ChartFigure]]:
        """Maps of pairs by partition."""
        found: dict[str, list[ChartFigure]] = {}
        for one in self.judged.verdict.pairs:
            found.setdefault(one.rounds.partition, []).extend(figures.of_rounds(one.rounds))
        return found

    def all_figures(self) -> Iterator[ChartFigure]:
        """Yield every figure once."""
        yield from map(self.figure, self.groups)
        yield from chain(*map(self.pair, self.netpipe), *self.maps.values())


NONE = "–"
_HEAD = ("node", "rounds of pairs", "effect", "what differs")
MOST_NODES = 64
"""Nodes of a partition up to which all are in its table; beyond, only those with remarks."""

TWIN = "twin: a sound link of the same kind, measured next to each launch"
_OF_TWIN = {"paired_latency": "latency over the twin's", "paired_share": "r∞ over the twin's"}
"""References of the key figures besides those in their own columns, in words."""

NIGHTS = 14
"""Newest sessions of the history that are shown."""

_LEAST_HALF = 1.2
"""Least ratio of the highest block's value to the middle's."""


def key_figures(report: Report, partition: str = "") -> DataTable | None:
    """Return a row for each measured pair of nodes, of one partition or all; None without any."""
    nights, followed, judged = report.nights, {}, []
    if nights is not None and len(nights.sessions) > 1:
        followed = {(one.case.key(), one.quantity): one.values for one in nights.series}
    rows = []
    for one in report.judged.verdict.cases:
        case, found = one.case, one.landmarks
        pair = (case.path, case.direction, case.ranks) == ("inter-node", "oneway", 2)
        if found is None or partition not in ("", case.partition) or not pair:
            continue
        if not registry.function_of(case).single:
            continue
        bounds, values = report.limits(case), {}
        for quantity in (Quantity.LATENCY, Quantity.ASYMPTOTIC):
            past = _last_nights(followed.get((case.key(), quantity), ()), quantity)
            value = number(getattr(found, quantity), ".4g", none=NONE)
            values[quantity] = (value, str(bounds.get(quantity, NONE)), past)
        rate, *others = values[Quantity.ASYMPTOTIC]
        share = number(found.line_rate_share, ".1%", none=NONE)
        name = f"{content.state_of(one).sign} {content.configuration(case)}"
        measured = (name, content.function_name(case), *values[Quantity.LATENCY])
        rows.append((*measured, rate, *others))
        judged.append(_judged(report, one, {OF_LINE_RATE: share}, bounds))
    head = ["configuration", "measured", "latency, µs", "reference", "last nights"]
    head += ["bandwidth r∞, MB/s", "reference", "last nights"]
    more = list(dict.fromkeys(chain.from_iterable(judged)))
    rows = [
        (*row, *(of.get(one, NONE) for one in more)) for row, of in zip(rows, judged, strict=True)
    ]
    caption = "r∞: bandwidth that the largest messages tend to; in brackets: what a figure must be"
    caption += "; floor: the lowest score against another library" if "floor" in more else ""
    caption += f"; {TWIN}" if {*more} & {*_OF_TWIN.values()} else ""
    if followed:
        caption += f"; last nights: up to {NIGHTS} sessions, with the least and the largest value"
    head += more
    numbers = (2, 3, 5, 6, *range(8, len(head)))
    return DataTable(head, rows, numbers, caption, heads=2).filled() if rows else None


def _judged(
    report: Report, one: CaseVerdict, cells: dict[str, str], bounds: Mapping[str, Limits]
) -> dict[str, str]:
    """Return cells with the values that criteria and references judged, and what each must be."""
    result, matrix = one.result, report.judged.matrix
    for finding in (each for each in one.findings if None not in (each.bound, each.value)):
        criterion, variable = BY_FINDING.get(finding.criterion), finding.variable
        if result and criterion is not None and (heading := criterion.key_figure):
            of = criterion.bounds_in(judge.subject(result, matrix).settings, inside=False)
            value = cells.get(heading) or of.in_words(finding.value or 0.0, ".3g")
            cells[heading] = f"{value} ({of.allowed()})"
        elif variable in _OF_TWIN and variable in bounds:
            cells[_OF_TWIN[variable]] = f"{finding.value:.3g}% ({bounds[variable]}%)"
    return cells


def _last_nights(values: Sequence[float | None], quantity: Quantity) -> str:
    """Return the newest values as a line of blocks, with the least and the largest of them."""
    at = {night: value for night, value in enumerate(values[-NIGHTS:]) if value is not None}
    known = readable(at.values())
    if not known:
        return NONE
    worst = max if quantity.rising_is_worse else min
    # Noise stays flat, in the middle.
    middle, half = math.sqrt(min(known) * max(known)), math.sqrt(max(known) / min(known))
    scale = (middle / max(half, _LEAST_HALF), middle * max(half, _LEAST_HALF))
    drawn = sparkline(at, columns(range(min(len(values), NIGHTS)), NIGHTS), scale, worst)
    return f"{drawn} {min(known):.4g}–{max(known):.4g}"


def node_blocks(report: Report, only: str = "") -> Iterator[Block]:
    """Yield maps and table of each partition with known nodes, or of the ``only`` one."""
    for partition in [only] if only else report.judged.matrix.partitions:
        maps = report.maps.get(partition, [])
        rows, left = _node_rows(report.judged.verdict, partition)
        if maps or rows or left:
            yield Cell(partition, "heading")
            yield from [maps] if maps else []
            yield DataTable(_HEAD, rows, heads=1).filled()
            yield Sentences([f"{counted(left, 'more node')} without findings"] if left else [])


def _node_rows(verdict: Verdict, partition: str) -> tuple[list[list[str]], int]:
    """Return a row for each node, of many only those with findings, and how many it leaves out."""
    cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    amiss: set[str] = set()

    def add(node: str, column: str, *texts: str, wrong: bool = True) -> None:
        cells[node][column] += texts
        amiss.update([node] if wrong else [])

    for one in (one for one in verdict.pairs if one.rounds.partition == partition):
        for node, state in one.judgement.nodes.items():
            wrong = state.state is not State.CLEARED
            add(node, "rounds of pairs", f"{one.rounds.environment}: {state.state}", wrong=wrong)
            add(node, "effect", *map(str, state.effects), wrong=wrong)
    for covered in (one for one in verdict.coverage if one.partition == partition):
        words = {"not measured": covered.unmeasured, "down": covered.down}
        for word, nodes in {**words, "drained": covered.drained}.items():
            for node in nodes:
                add(node, "rounds of pairs", word)
    placed = list(cells)
    for finding in (one for one in verdict.nodes if one.partition == partition):
        known = finding.value is not None and finding.others is not None
        differs = f": {finding.value}, others {finding.others}" if known else ""
        for node in finding.nodes:
            add(node, "what differs", f"{finding.fact}{differs}")
    names = [*placed, *sorted(cells.keys() - set(placed))]
    shown = names if len(names) <= MOST_NODES else [node for node in names if node in amiss]
    titles = _HEAD[1:]
    rows = [[node, *("; ".join(cells[node][one]) or NONE for one in titles)] for node in shown]
    return rows, len(names) - len(shown)


TESTBED = "testbed"
"""The system that ci/testbed builds; ci/setup prepares its machine, and needs root for that."""

_FOLDERS = {
    KIND_CONFIGURATION: ("RFM_CONFIG_PATH", "site-config"),
    KIND_REFERENCES: ("RFM_REFERENCE_PREFIX", "reference-values"),
}
"""Folders of each kind of file: the variable, and its value after ``. ci/activate``."""

_LINK = {"NIC": "nic", "driver": "driver", "Mbit/s": "link_mbit_s", "MTU": "mtu"}
_RANKS = {"ranks": "rank_counts", "ranks per node": "ranks_per_node"}
MOST_BESIDE = 3
"""Partitions up to which each is a column of what was tested; more are a row each."""
_OF_PARTITION = {"switch": "switch", **_LINK, **_RANKS}
"""Columns of the table of partitions, and the site's keys."""
_EXTENT = ("nodes measured", "launches per case", "largest message")
_OF_NODE = {
    **{"CPU": "cpu", "kernel": "kernel", "NIC": "nic", "driver": "driver"},
    **{"firmware": "firmware", "Mbit/s": "link_mbit_s", "MTU": "mtu"},
}
"""Columns of the table of nodes, and their fields."""
_IN_FULL = ("offloads", "coalescing", "sysctls", "programs")


def provenance_blocks(report: Report) -> Iterator[Block]:
    """Yield the commands that repeat the run, and all that is known of where it ran."""
    session, found = report.judged.session, report.judged.session.provenance
    commands, cautions = _repeat(report, found)
    yield Cell("To repeat the run", "heading")
    yield Cell("\n".join(commands), "code")
    yield from cautions
    yield {"This report again": report.command}
    yield Cell("The session", "heading")
    keys = {"ReFrame": "version", "command": "cmdline", "run in": "workdir", "by": "user"}
    facts = {name: stated(session.info, key) for name, key in keys.items()}
    yield {"session": session.path, **facts}
    yield Sentences(_changed(report), "What the site's file says otherwise now")
    built = []
    for name, extras in _recorded(report, "environment").items():
        packages = extras.get("built", {}).get("packages", {})
        named = [f"{package} {one['version']} /{one['hash']}" for package, one in packages.items()]
        built.append((name, extras["mpi"], "; ".join(named) or "not built by Spack"))
    if built:
        yield Cell("The environments, as measured", "heading")
        yield DataTable(("environment", "MPI", "package, version and hash"), built)
    if found.netproof:

        def known(value: str | None, key: str) -> str:
            return value or f"not known: {found.unknown.get(key, 'no reason is given')}"

        yield Cell("Software and files", "heading")
        yield {
            **{"netproof": found.netproof, "ReFrame": found.reframe},
            "Slurm": known(found.slurm, "slurm"),
            "revision": known(found.git_revision, "git_revision"),
        }
        files = [(path, kind, sha) for kind, of in found.files.items() for path, sha in of.items()]
        fold = "Files of configuration and references"
        yield DataTable(("file", "kind", "SHA-256"), files, fold=fold)
    if found.nodes:
        if found.differences:
            yield Sentences(found.differences, "How nodes or jobs differ", name="nodes-differ")
        else:
            yield "All nodes of a partition are alike in all that was recorded."
        yield Cell("Nodes", "heading")
        # Each node of a partition once; where jobs found changes, the differences say so.
        yield from _nodes({(one.partition, one.node): one for one in found.nodes})
    unknown = [f"{what}: {reason}" for what, reason in found.unknown.items()]
    yield Sentences(unknown, f"What is not known: {len(unknown)}", folded=True)


def stated(info: Mapping[str, Any], key: str) -> str:
    """Return ReFrame's value of the session under a key, or that it has none."""
    value = info.get(key)
    return f"(the session does not state {key})" if value in (None, "") else str(value)


def _repeat(report: Report, found: Provenance) -> tuple[list[str], list[str]]:
    """Return the commands to repeat the run in a clone, and in what it would differ."""
    info, cautions = report.judged.session.info, []
    lines = ["python3 -m venv .venv && .venv/bin/pip install --editable .", ". ci/activate"]
    if report.system == TESTBED:
        lines = ["ci/setup", "ci/testbed/testbed up", ". ci/testbed/activate"]
    if found.git_revision:
        lines.insert(0, f"git checkout {shlex.quote(found.git_revision)}")
    else:
        cautions.append("The revision is not known, so the commands may run another one.")
    for kind, (variable, folder) in _FOLDERS.items():
        used = {str(Path(path).parent) for path in found.files.get(kind, ())}
        own = str(Path(str(info.get("workdir", ""))) / folder)
        lines += [f"export {variable}={shlex.quote(one)}" for one in used - {own}]
    if found.git_changed:
        cautions.append("The checkout held changes that are in no revision.")
        cautions.append(
            "The run is the same where the files of configuration and references have the"
            " SHA-256 that stand below."
        )
    if command := info.get("cmdline"):
        lines.append(_in_any_clone(command, report.system))
    else:
        cautions.append("The session does not state its command.")
    if left := len(report.judged.verdict.skipped):
        cautions.append(
            f"{counted(left)} deferred or not measured, see the verdict; the command runs them all."
        )
    return lines, cautions


def _in_any_clone(command: str, system: str) -> str:
    """Return ReFrame's command line with the clone's own ``reframe``, and the system in words."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if not words or PurePath(words[0]).name != "reframe":
        return command
    named = any(word.partition("=")[0] == "--system" for word in words)
    return shlex.join(["reframe", *([] if named else ["--system", system]), *words[1:]])


def tested(report: Report) -> DataTable:
    """Return each partition's switch, card, link and libraries, what was measured, and its cases.

    They are as the session recorded them, or the site's for a partition that was not measured.
    """
    recorded = _recorded(report, "partition")
    measured = (one for one in report.judged.session.results if one.measured is not None)
    mpi = grouped((one.partition, one.extras["environment_extras"]["mpi"]) for one in measured)
    states: dict[str, Counter[str]] = defaultdict(Counter)
    for one in report.judged.verdict.cases:
        word = "did not run" if not one.ran else "failed" if one.failed else ""
        states[one.case.partition][word or ("passed" if one.passed else "inconclusive")] += 1
    covered = {one.partition: one.measured for one in report.judged.verdict.coverage}
    rows: list[Sequence[str | Cell]] = []
    unmeasured = "nothing was measured; this is the site's file"
    for name, site in report.judged.matrix.partitions.items():
        then = recorded.get(name)
        keys, libraries = _OF_PARTITION.values(), dict.fromkeys(mpi.get(name, [unmeasured]))
        values = [_said(getattr(site, key) if then is None else then[key]) for key in keys]
        words = ("passed", "failed", "inconclusive", "did not run")
        cases = ", ".join(f"{states[name][word]} {word}" for word in words if states[name][word])
        first = Cell(name, link=report.partition_pages.get(name, ""))
        nodes = covered.get(name, ())
        found = [one.measured for one in report.judged.verdict.by_partition.get(name, [])]
        whole = [one for one in found if one is not None]
        what = (f"{len(nodes)}: {slurm.fold(nodes)}" if nodes else NONE, *_extent(whole))
        rows.append([first, *values, ", ".join(libraries), *what, cases])
    head = ("partition", *_OF_PARTITION, "libraries", *_EXTENT, "cases")
    if len(rows) <= MOST_BESIDE and not report.partition_pages:
        lines = [list(map(str, one)) for one in zip(head, *rows, strict=True)]
        return DataTable(lines[0], lines[1:], heads=1)
    return DataTable(head, rows, heads=1)


def _extent(several: Sequence[Measured]) -> tuple[str, str]:
    """Return the launches of a case, and the largest message, of measured cases."""
    if not several:
        return NONE, NONE
    counts = sorted({len(one.launches) for one in several})
    launches = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return launches, size_in_words(max(one.curve.sizes[-1] for one in several))


def _changed(report: Report) -> list[str]:
    """Return what the site's file says otherwise now than when a partition was measured."""
    now = report.judged.matrix.partitions
    return [
        f"{name}: {title}: {_said(then[key])} when it was measured,"
        f" {_said(getattr(now[name], key))} in the site's file now"
        for name, then in _recorded(report, "partition").items()
        for title, key in _OF_PARTITION.items()
        if name in now and _said(getattr(now[name], key)) != _said(then[key])
    ]


def _recorded(report: Report, what: str) -> dict[str, dict[str, Any]]:
    """Return the session's record of each measured ``partition`` or ``environment``."""
    found: dict[str, dict[str, Any]] = {}
    for result in report.judged.session.results:
        if result.measured is not None:
            found.setdefault(getattr(result, what), result.extras[f"{what}_extras"])
    return found


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _nodes(nodes: Mapping[tuple[str, str], Node]) -> Iterator[Block]:
    """Yield a row for each node, by partition and name; settings in full of those alike at once."""
    rows = []
    for (partition, name), node in nodes.items():
        values = (getattr(node, field) for field in _OF_NODE.values())
        rows.append((name, partition, *("–" if one is None else str(one) for one in values)))
    yield DataTable(("node", "partition", *_OF_NODE), rows)

    def settings(one: Node) -> tuple[tuple[str, str], ...]:
        several = ((group, getattr(one, group)) for group in _IN_FULL)
        return tuple((f"{g} {key}", str(value)) for g, of in several for key, value in of.items())

    for shared, alike in grouped((settings(one), one) for one in nodes.values()).items():
        fold = f"{listed([one.node for one in alike])}: {', '.join(_IN_FULL)}"
        yield DataTable(("setting", "value"), shared, fold=fold)
