"""Levels, findings and figures of all recorded data, as facts in plain words.

Only this module knows the project's objects: new names change it, and no golden file.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from datetime import datetime
from functools import cache, reduce
from pathlib import Path
from statistics import fmean, pstdev
from types import SimpleNamespace
from typing import Any

import golden_paths  # noqa: F401
import made_nights
import made_sessions
import test_causes
import test_diagnosis as scenes
import test_gains
import test_gpcnet
import test_pairs

from ci.evaluation import histories as drawn
from ci.evaluation import pair_power as simulated
from ci.evaluation import power
from netproof.comparison import comparison
from netproof.diagnosis import diagnosis
from netproof.experiments import load as load_job
from netproof.experiments import parameters, sweep, tails
from netproof.experiments.load import Statistic
from netproof.experiments.sweep import Sweep
from netproof.history import followers
from netproof.history import history_verdict as nights
from netproof.measurement.case import Case
from netproof.pairs import verdict as pairs
from netproof.session import job_files, pair_rounds
from netproof.site import site
from netproof.site.partition import Partition
from netproof.store import Store
from netproof.verdict import (
    confirmations,
    derive,
    file_names,
    files,
    judge,
    session_verdict,
)
from netproof.verdict.engine import Subject
from netproof.verdict.references import ReferenceFile
from netproof.verdict.verdict import StoredResults

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SESSIONS = tuple(sorted(path.stem for path in (DATA / "sessions").glob("*.json")))
GIGE = ("testbed", "gige", "mpich")

Fact = tuple[Any, ...]
"""Section, what it is, and values: words, numbers, None, or sequences of these."""

FIGURES = {
    **{"latency_us": "latency us", "peak_mb_s": "peak MB/s", "peak_size": "size of the peak"},
    **{"half_power_size": "half-power size", "asymptotic_mb_s": "asymptotic MB/s"},
    **{f"rate_{kib}_kib_mb_s": f"rate at {kib} KiB MB/s" for kib in (1, 4, 16, 64)},
    **{"half_performance_bytes": "half-performance length", "paired_mb_s": "twin MB/s"},
    **{"line_rate_share": "share of line rate", "paired_share": "share of twin"},
}
WORDS = {
    **FIGURES,
    "oneway": "one way",
    **{"rate both ways": "bidirectional rate"},
    **{"astride": "contains the bound", "beyond": "outside the bound", "red": "failed"},
    **{"status": "exit status", "result.result": "result of ReFrame", "sure": "certainty"},
    **{"curves_again": "repeated launches", "all_crashes": "crashed attempts"},
    **{"finding.level": "level of crashes", "known": "nodes known", "what_failed": "faults"},
    **{"judgement.rounds": "usable rounds", "judgement.disturbed": "disturbed measurements"},
    **{"not_known": "unknown", "since.began": "since", "as_good": "statistically tied"},
    **{"right": "alone found", "alone": "without load", "loaded": "with load"},
}
"""Plain words for names and values of the code."""


def word(name: object) -> str:
    return WORDS.get(str(name), str(name))


def of_case(name: str, case: Case) -> str:
    """Return the section of a case in the part of that name."""
    what = f"{case.partition} {case.environment} {case.benchmark} {case.function}"
    ranks = f"{case.ranks} ranks, {case.ranks_per_node} per node"
    return f"{name}, {what}, {ranks}, {word(case.path)}, {word(case.direction)}"


def with_interval(value: object, interval: Any) -> list[object]:
    """Return a value, and its interval where it has one."""
    return [value] if interval is None else [value, "from", interval[0], "to", interval[1]]


def plain(value: Any, *, listed: bool = False) -> list[object]:
    """Return a word, a number with its interval, or how many things, all if ``listed``."""
    value = value() if callable(value) else value
    if isinstance(value, str):
        return [word(value)]
    for name in ("value", "ratio", "factor", "share"):
        if hasattr(value, name):
            of = [word(value.quantity)] if hasattr(value, "quantity") else []
            return [*of, *with_interval(getattr(value, name), getattr(value, "interval", None))]
    if not isinstance(value, Sized):
        return [value]
    return [part for one in value for part in plain(one)] if listed else [len(value)]


def facts(section: str, one: object, names: str, of: str = "") -> Iterator[Fact]:
    """Make a fact of each attribute that ``names`` has, ``*`` for a list; ``of``: the thing."""
    for path in names.split():
        name = path.strip("*")
        value = reduce(
            lambda at, part: at if at is None else getattr(at, part), name.split("."), one
        )
        if value not in (None, ""):
            what = f"{re.sub('[._]', ' ', word(name))} {of}".strip()
            yield section, what, *plain(value, listed="*" in path)


def facts_of_each(section: str, things: Iterable, names: str, of: str) -> Iterator[Fact]:
    """Do so for several things; ``of``: the attributes that distinguish them."""
    for one in things:
        which = (plain(getattr(one, name), listed=True) for name in of.split())
        yield from facts(section, one, names, "of " + " ".join(map(str, itertools.chain(*which))))


def finding(section: str, one: Any, level: str, *more: object) -> Fact:
    values = [word(level), *with_interval(one.value, one.interval)]
    for name in ("bound", "size", "node"):
        values += [] if getattr(one, name) is None else [name, getattr(one, name)]
    # The label goes on with the benchmark, which is the same.
    against = re.split(" (?:NetPIPE|IMB|OMB)", one.against or "")[0].removeprefix("testbed:")
    return section, word(one.criterion), *values, *(["against", against] if against else []), *more


def findings(section: str, several: Iterable) -> Iterator[Fact]:
    for one in several:
        more = [] if one.level is one.own_level else ["finding", one.own_level]
        if one.repeated is not None:
            level, count, launches = one.repeated
            more += ["repeated", level, count, "of", launches]
        yield finding(section, one, one.level, *more)


def figures(section: str, one: Any, launches: list) -> Iterator[Fact]:
    """Sum up a curve and its landmarks."""
    sizes, marks = one.curve.sizes, one.landmarks
    yield section, "sizes", len(sizes), "from", sizes[0], "to", sizes[-1]
    logs = [[math.log(time or 1) for time in curve.time_us] for curve in (one.curve, *launches)]
    spread = fmean(map(pstdev, zip(*logs[1:], strict=True)))
    yield section, "mean time us", math.exp(fmean(logs[0]))
    yield section, "spread", spread, "over launches", len(launches)
    for name in FIGURES:
        if (value := getattr(marks, name)) is not None:
            yield section, word(name), *with_interval(value, marks.intervals.get(name))
    if marks.eager_limit is not None:
        yield from facts(section, marks, "eager_limit.size_below eager_limit.step_us")


def measured(section: str, one: Any) -> Iterator[Fact]:
    yield from figures(section, one, [launch.curve for launch in one.launches])
    yield from facts(section, one, "line_rate_mb_s all_crashes")
    cpu = "cpu_s start_s cores asleep_share s_per_gb us_per_message"
    yield from facts_of_each(section, one.cpu_costs, cpu, "node")


@cache
def judged(name: str) -> session_verdict.JudgedSession:
    """Judge a recorded session by the project's own site."""
    return session_verdict.judge_session(session_verdict.find(DATA / "sessions" / f"{name}.json"))


def as_if_whole(name: str) -> power.Recorded:
    """Judge a session as if the site had no more cases than it ran."""
    one = judged(name)
    cases = {result.case: None for result in one.session.results if result.case is not None}
    matrix = dataclasses.replace(one.matrix, cases=tuple(cases))
    entries = session_verdict.references_of(matrix)
    found = judge.judge(matrix, one.session, references=entries, made=one.session.provenance)
    return power.Recorded(one.session, matrix, found, entries)


def verdicts() -> Iterator[Fact]:
    """Judge all recorded sessions, one of them with stored results too."""
    for name in SESSIONS:
        found, whole = judged(name).verdict, as_if_whole(name).verdict
        yield from facts(name, found, "status faults failed_tests nodes traffic")
        yield from facts(name, whole, "status", "of what ran")
        yield from facts_of_each(
            name, whole.launched, "launches crashed finding.level", "partition environment"
        )
        yield from facts_of_each(
            name, whole.coverage, "measured stated known failed short", "partition"
        )
        missing = Counter(one.case.key()[1:3] for one in found.cases if not one.ran)
        for where in {one.case.key()[1:3] for one in whole.cases}:
            yield name, f"missing of {' '.join(where)}", missing[where]
        for one in whole.cases:
            section = of_case(name, one.case)
            yield from facts(section, one, "level result.result faults")
            if one.again is not None:
                yield from facts(section, one, "curves_again")
            yield from findings(section, one.findings)
            yield from () if one.measured is None else measured(section, one.measured)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "store")
        for name in ("two-switches", "healthy"):
            diagnosis.ingest(store, DATA / "sessions" / f"{name}.json")
        asked = StoredResults(store.folder)
        found = session_verdict.judge_session(
            judged("sick").session, asked=asked
        ).verdict.compared_with
    for one in (*found.cases, *found.left_out):
        yield from facts(of_case("sick, stored", one.case), one, "days")
        yield from findings(of_case("sick, stored", one.case), one.findings)


COMPARED = (
    ("osu/*/*-4.out", "{version}/{benchmark}.out", "10G"),
    ("osu/*/bw.out", "{version}/{benchmark}.out", "100G"),
    ("imb/20*/all.txt", "{version}/{benchmark}.txt", None),
    ("netpipe/*/testbed-*.out", "{version}/testbed-{net}.out", "1G"),
)
"""Outputs to compare, the configuration in their paths, and the link between two ranks."""


OUTPUTS = ("osu", "imb", "netpipe", "curves", "spack", "public")
"""Folders of recorded outputs that are judged each by itself."""


def judged_files() -> Iterator[Fact]:
    """Judge every recorded output by itself, and some compared with each other."""
    several = {}
    for path in sorted(DATA.glob("*/**/*.*")):
        name = str(path.relative_to(DATA))
        if name.split("/")[0] in OUTPUTS and path.is_file() and path.suffix not in (".md", ".json"):
            several[name] = files.judge([path], bidirectional="both-ways" in name)
    for glob, pattern, rate in COMPARED:
        named, paths = file_names.Pattern(pattern), sorted(DATA.glob(glob))
        link = rate and files.link(rate, None, files.Transport.TCP)
        first = named.of(paths[0])[0]
        several[glob] = files.judge(paths, named=named, link=link, baseline=first)
    for name, found in several.items():
        yield from facts(name, found, "status faults notes")
        for one in found.curves:
            kind, where = one.kind, "" if "/" in one.case.name else f"{one.case.name}, "
            what = f"{kind.benchmark} {kind.function}, {kind.ranks} ranks, {word(kind.direction)}"
            group = f", group {kind.group} of {kind.groups}" if kind.groups > 1 else ""
            section = f"{name}, {where}{what}{group}{', with a remark' if kind.remark else ''}"
            yield section, "level", one.level
            yield from figures(section, one.case, one.case.launches)
            yield from (finding(section, its, its.level) for its in one.findings)


STEP = re.compile(
    r"(?:(tcp|mpi)-(inter-node|intra-node)-(\w+)|(?!tuning|tail|pairs|gpcnet)(\w+))\.1\.out"
)
"""The output of a step of NetPIPE, or of a function."""

FOUR = {"osu-7.4", "counters-healthy/Barrier", "counters-healthy/Exchange"}
"""Jobs, and functions of jobs, of four ranks."""


def jobs() -> Iterator[Fact]:
    """Read and judge the cases of recorded jobs."""
    for folder in sorted(path for path in (DATA / "jobs").iterdir() if path.is_dir()):
        partition = testbed() if folder.name == "netpipe-twin" else made_sessions.site()
        benchmark, subjects = "osu" if folder.name.startswith("osu") else "imb", {}
        for found in filter(None, (STEP.fullmatch(path.name) for path in sorted(folder.iterdir()))):
            protocol, path, direction, function = found.groups()
            ranks = 4 if {folder.name, f"{folder.name}/{function}"} & FOUR else 2
            case = Case(*GIGE, benchmark, function, ranks, 1)
            if protocol:
                per_node = 2 if path == "intra-node" else 1
                case = Case(*GIGE, "netpipe", protocol, 2, per_node, path, direction)
            count = len([*folder.glob(found[0].replace(".1.", ".[0-9]."))])
            try:
                one = job_files.of_job(folder, case, partition, count, mpi_over_tcp=True)
            except job_files.Incomplete:
                # Sentences are no facts.
                yield of_case(folder.name, case), "reasons", 1
                continue
            subjects[case.key()] = Subject.of_extras(one, made_sessions.extras(), {})
            yield from measured(of_case(folder.name, case), one)
        for key, several in confirmations.findings_along(subjects.values()).items():
            yield from findings(of_case(folder.name, subjects[key].case), several)


def testbed() -> Partition:
    """Return the first partition of the testbed, without bounds on disturbance."""
    configuration = site.load(ROOT / "site-config" / "testbed.py")
    extras = configuration["systems"][0]["partitions"][0]["extras"]
    any_load = {"disturbance": {"others": 1, "steal": 1}}
    return Partition.model_validate({**extras, "criteria": {**extras["criteria"], **any_load}})


ACCUSING = "slower slower_latency error missed rounds disturbed_share resolution"
"""Settings that decide which node is accused."""


def rounds_of_pairs() -> Iterator[Fact]:
    """Judge recorded rounds of pairs, as recorded and with slower nodes."""
    several = {"small buffers": made_sessions.rounds_that_lose()}
    slowed = ({}, {"gige_3": 2.0}, {"gige_3": 1.15}, {"gige_1": 2.0, "gige_2": 1.5})
    for times, slow in itertools.product((1, 3, 6), slowed):
        what = ", ".join(f"{node} {by:g} times" for node, by in slow.items()) or "nothing"
        several[f"{3 * times} rounds, slowed {what}"] = made_sessions.rounds(times, **slow)
    own, settings, here = test_pairs.recorded(), test_pairs.SETTINGS, test_pairs.PARTITION
    several["disturbed"] = pairs.judge(own, settings, here.settings().disturbance)
    both = settings.model_copy(update={"quantities": ("latency", "rate"), "bisection": 0.9})
    link = here.link(over_tcp=True)
    several["with latencies and a link"] = pairs.judge(own, both, test_pairs.BUSY, link)
    for section, found in several.items():
        says = found.judgement
        yield from facts(section, found, "judgement.rounds what_failed bisection")
        for name, node in says.nodes.items():
            yield from facts(section, node, "state effects*", f"of {name}")
        yield from facts_of_each(section, says.accusations, "effects* alternatives", "kind name")
        yield from facts_of_each(section, found.alone, "recovery effects*", "pair")
        yield from ((section, f"share of {word(one)}", share) for one, share in says.noise.items())
    yield from facts("settings", settings, ACCUSING)
    for folder, where, largest in (
        ("both-ways", ("testbed", "tree", "intelmpi"), 16384),
        ("stream", GIGE, 524288),
    ):
        for one in pair_rounds.read(DATA / "jobs" / folder, where, largest)[0]:
            for nodes, time_us, rate in zip(one.pairs, one.times_us, one.rates_mb_s, strict=True):
                pair = SimpleNamespace(nodes=nodes, time_us=time_us, rate_mb_s=rate)
                yield from facts_of_each(folder, [pair], "time_us rate_mb_s", "nodes")


def diagnoses() -> Iterator[Fact]:
    """Diagnose recorded sessions, and sessions with a known fault made of recorded jobs."""
    earlier = [
        (name, datetime(2026, 11, day), lambda name=name: judged(name))
        for day, name in ((20, "sick"), (19, "healthy"))
    ]
    several = {name: diagnosis.diagnose(judged(name)) for name in SESSIONS}
    several["sick, after sick"] = diagnosis.diagnose(judged("sick"), None, earlier)
    several["busy node"] = diagnosis.diagnose(scenes.loaded("gige-3"))
    case, slow = scenes.judged_case, {"of_pairs": [made_sessions.rounds(gige_2=2.0)]}
    sack = {"sysctls": {"net.ipv4.tcp_sack": "0"}}
    for name, parts in {
        "healthy": {},
        "slow port": slow,
        "link down": {"described": scenes.in_job(gige_2={"state": "no carrier"})},
        "link flapped": {"cases": [case(scenes.subject("carrier"), "slow")], **slow},
        "other network": {"cases": [case(scenes.subject("management", "mpi-inter-node-oneway"))]},
        "MTU": {"described": scenes.in_job("differ"), **slow},
        "firewall": {"cases": [scenes.unmeasured()], "described": scenes.in_job(**scenes.RING)},
        "setting and slow port": {"described": scenes.in_job(gige_2=sack), **slow},
        "losing and slow port": {"cases": scenes.losing(gige_1=2, gige_2=600, gige_3=3), **slow},
        "all lose": {"of_pairs": [made_sessions.rounds_that_lose()], "cases": []},
        "all fail": {"cases": scenes.red_everywhere(), "of_pairs": []},
        "slow to send": {"of_pairs": [scenes.streams(0.5, 1)]},
        "no coverage": {"covered": False},
    }.items():
        several[f"made, {name}"] = diagnosis.diagnose(scenes.session_of(**scenes.healthy(**parts)))
    for name, found in several.items():
        yield name, "exit status", diagnosis.status(found)
        for one in found:
            here = f"{name}, {one.partition}"
            yield from facts(here, one, "outcome cases passed red ruled_out not_known incomplete")
            place = "place.kind place.nodes* place.environments* place.interface"
            also = "sure since.began consequences alternatives evidence"
            yield from facts_of_each(here, one.culprits, f"{place} {also}", "cause")


def comparisons() -> Iterator[Fact]:
    """Compare recorded sessions, partitions and environments."""
    healthy, sick, both = (judged(name).session for name in ("healthy", "sick", "two-switches"))
    for name, asked in (
        ("healthy and sick", (healthy, sick)),
        ("two-switches and healthy", (both, healthy)),
        ("healthy by switch", (healthy, None, ("gige", "fast-ethernet"))),
        ("two-switches by environment", (both, None, None, ("mpich", "intelmpi"))),
    ):
        found = comparison.compare(*comparison.sides(*asked))
        yield from facts(name, found, "mean uncompared differences")
        yield name, "sizes at which most differ", found.mostly("netpipe"), found.mostly("imb")
        for one in found.cases:
            section = of_case(name, one.first.case)
            yield from facts(section, one, "outcome score")
            yield from facts_of_each(section, one.ranges, "largest faster ratio size", "least")
            for landmark, ratio in one.landmarks.items():
                apart = with_interval(ratio.difference, ratio.difference_interval)
                if ratio.ratio is not None:
                    yield section, word(landmark), *plain(ratio), "difference", *apart


def references() -> Iterator[Fact]:
    """Derive references from three recorded sessions."""
    several = [judged(f"repeated-{number}").session for number in (1, 2, 3)]
    file = ReferenceFile(ROOT / "reference-values" / "testbed.yaml")
    for asked in ({}, {"allow_looser": True}, {"allow_looser": True, "per_size": True}):
        for one in derive.derived(several, file, "testbed", **asked):
            section = of_case(", ".join(("derived", *asked)), one.case)
            yield section, "made", not one.reason
            yield from facts(section, one, "outside unchanged kept")
            for variable, entry in one.entries.items():
                yield section, word(variable), *entry[:3]


def histories() -> Iterator[Fact]:
    """Judge nights made of a recorded session, and series of normal and recorded noise."""
    with tempfile.TemporaryDirectory() as folder:
        made = made_nights.MadeNights(Path(folder))
        made.add_many(26, {21: made_nights.by(1.2, environment="mpich")})
        found = nights.judge(made.store)
        sessions = made.store.sessions()
    yield from facts("nights", found, "status tested false_alarms_a_month bad_nights")
    yield from facts_of_each("nights", found.events, "worse shifts", "partition environment")
    for event in found.events:
        where = f"night of {event.partition} {event.environment}"
        yield "nights", where, sessions.index(event.session)
    followed = {}
    for one in (*found.nights.series, *found.nights.pools):
        where = f"nights, pool {one.where}" if one.pooled else of_case("nights", one.case)
        followed[where, word(one.quantity)] = found.followed[one]
    for shift in found.shifts:
        yield "nights, states", word(shift.of.quantity), *shift.of.where, word(shift.state)
    bad = drawn.changed(100, 40, 0.2)
    bad[101:] = 0
    changes = {
        **{"step 5 %": drawn.changed(100, 40, 0.05), "drift 10 %": drawn.changed(100, 40, 0.1, 30)},
        "bad night 20 %": bad,
    }
    for noise, (name, change) in itertools.product((drawn.NORMAL, drawn.REAL), changes.items()):
        values = drawn.histories(noise, 4, 140, 5, change)
        for number, one in enumerate(followers.follow_all(values.tolist()), 1):
            followed[f"{noise.name} noise, {name}", f"series {number}"] = one
    for (section, what), one in followed.items():
        yield from facts(section, one, "level noise p_value", f"of {what}")
        names = "index found ended before after p_value"
        yield from facts_of_each(f"{section}, {what}", one.changes, names, "kind")


def power_of_verdicts() -> Iterator[Fact]:
    """Plant changes into a recorded session, and report the least that fails each case."""
    whole = as_if_whole("healthy")
    others = [
        dataclasses.replace(whole, session=dataclasses.replace(whole.session, info={"uuid": n}))
        for n in range(3)
    ]
    derived = {None: whole, 0.1: whole.by_derived(others, 0.1)}
    for plant in (*power.PLANTED, *(kind[5] for kind in power.GROWING.values())):
        if plant.floor not in derived:
            continue
        found, having = derived[plant.floor].judged_with(plant)
        new = [case for key, case in power.red(found).items() if key in having]
        unclear = len(power.unclear(found).keys() & having)
        yield plant.said, "planted into", len(having), "failed", len(new), "inconclusive", unclear
        for criterion, count in power.criteria_of(new).items():
            yield plant.said, f"failed by {criterion}", count
    for case, _, smallest in session_verdict.power_of(judged("healthy")):
        names = "change factor sure size by"
        yield from facts_of_each(of_case("stated", case), smallest, names, "change")


def pair_power() -> Iterator[Fact]:
    """Simulate rounds of pairs with a known fault, and report after how many it is named."""
    yield from facts("settings", simulated.SETTINGS, ACCUSING)
    for one in simulated.portions():
        if one.nodes in (4, 64) and one.count < 5 and one.slower != 0.2:
            found = one.run(0)
            what = f"{one.count} {one.kind} slower by {one.slower:g}, {one.noise} noise"
            where = f"{one.way}, {one.nodes} nodes, {what}"
            for name in ("found", "right", "cleared"):
                yield where, word(name), [getattr(found, name)]
            yield where, "rounds", [found.rounds] if one.way == "quick" else []
            yield where, "wrong", int(found.wrong)


def tuning() -> Iterator[Fact]:
    """Judge a recorded sweep of algorithms, and sweeps with known gains."""
    folder, case = DATA / "jobs" / "algorithms", Case(*GIGE, "imb", "Allreduce", 4, 1)
    values = ("ring", "reduce_scatter_allgather", "nonsense")
    names = parameters.algorithms("MPICH 5.0.2", case.function, values)
    assignment = parameters.library_of("MPICH 5.0.2").setting(case.function)
    seed = json.loads((folder / "plan.json").read_text())["seed"]
    turns, extras = sweep.turns(tuple(names), 3, seed), testbed().model_dump()
    planned = Sweep(case, sweep.ALGORITHM, "", assignment, "", seed, extras, turns)
    planned = dataclasses.replace(planned, library="MPICH 5.0.2", names=names)
    left = sweep.of_job(folder, "1", planned)
    yield from facts("recorded", left, "refused fell_back")
    launches = zip(left.turns, left.launches, strict=True)
    values, sizes = (
        ("recursive_doubling", "ring", "tree"),
        tuple(2**power for power in range(2, 20)),
    )
    scattered = functools.partial(test_gains.made, own=0.02, values=values, sizes=sizes)
    several = {
        "recorded": [sweep.Made(turn.value, turn.round, one.curve) for turn, one in launches],
        "ring wins, drift": scattered(
            {"ring": lambda size: 1.6 if size >= 65536 else 0.5}, drift=1.0
        ),
        "nothing wins": scattered(),
    }
    for name, made in several.items():
        table, tuned = sweep.tuned(made, by_size=True), sweep.tuned(made)
        yield from facts(name, table, "drift rounds disturbed")
        if tuned.best is not None:
            yield name, "recommended value", tuned.best.winner
            yield name, "recommended best in", word(tuned.best.at)
        yield from facts_of_each(name, table.rows, "winner as_good", "at")
        rows = {f"at {row.at}": row.gains for row in table.rows}
        rows |= {f"with {value}": tuned.gains_of(value) for value in tuned.values}
        for what, found in rows.items():
            yield from ((name, f"{word(which)} {what}", *plain(found[which])) for which in found)


def load() -> Iterator[Fact]:
    """Judge recorded congestion: factors, causes, tails of single calls, GPCNeT."""
    template = load_job.of_job(DATA / "jobs" / "load", "1")
    impacts = {"job": template.impacts}
    for name, rows in test_causes.RECORDED.items():
        found = test_causes.made(template, rows, load={"most": 1.5})
        impacts[name] = found.impacts
        yield from facts(name, found, "beyond undecided")
        yield from facts_of_each(
            name, found.causes_and_doubts[0], "nodes* value interval* launches fails", "kind"
        )
    for name, one in ((name, one) for name, found in impacts.items() for one in found):
        where = f"{one.victim} with {one.aggressor} {one.place}"
        yield from facts(name, one, "rounds refused", where)
        for kind, factor in one.factors.items():
            yield name, f"{kind}, {where}", *plain(factor), word(factor.side), factor.alone
    tail = tails.of_job(DATA / "jobs" / "tails", "1")
    yield "tails", "calls", len(tail.times_us)
    yield "tails", "mean us", fmean(tail.times_us)
    yield "tails", "longest us", max(tail.times_us)
    yield from facts("tails", tail, "pauses paused_share")
    for level, (value_us, interval_us) in tail.percentiles.items():
        yield "tails", f"value us of {level}", value_us
        yield "tails", f"interval us of {level}", *interval_us
    recorded = test_gpcnet.recorded()
    for name, made in (("GPCNeT", test_gpcnet.three(most=2.0)), ("GPCNeT recorded", recorded)):
        found = made
        yield name, "rounds", found.impacts[0].rounds
        yield from facts(name, found, "beyond undecided")
        for one in found.impacts:
            mean, tail = (one.factors[kind] for kind in (Statistic.MEAN, Statistic.TAIL))
            yield from facts(name, mean, "alone loaded", f"of {one.victim}")
            yield name, f"mean of {one.victim}", *plain(mean)
            yield name, f"tail of {one.victim}", *plain(tail)


QUICK = (rounds_of_pairs, tuning, load)
SLOW = (verdicts, judged_files, jobs, diagnoses, comparisons, references, histories)
REPLAYS = (power_of_verdicts, pair_power)
PARTS = {one.__name__.replace("_", "-"): one for one in (*QUICK, *SLOW, *REPLAYS)}
"""Functions by the names of their golden files."""
