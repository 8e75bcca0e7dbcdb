"""CPU seconds of the verbs by a session's cases, and of what is done for each node of a launch.

``--session`` is best a report of ``ci/quickstart``. Its partition is copied under further names,
nodes and jobs included, until a session has so many cases; each copy has records of its own, and a
site's configuration expects all of them. Earlier nights are the same session on other days. Each
verb runs once in a process of its own, and is refused where its exit status says that it could not
answer. With ``--nodes``, a recorded node's counters are those of all nodes, with other digits on
each. The exponent is that of the seconds over the counts from 1,000 on: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ci.evaluation.machine import ROOT
from ci.evaluation.plants import TABLES
from ci.evaluation.table import show
from netproof import codec
from netproof.benchmarks import registry
from netproof.criteria.settings import Settings, set_by_sites
from netproof.errors import NetproofError
from netproof.measurement.counters import counters
from netproof.pairs.accusation import judge
from netproof.pairs.model import PairObservation
from netproof.pairs.rounds import Mode, next_round, tournament
from netproof.session import records
from netproof.verdict import traffic

SMALL = ROOT / "tests" / "data" / "sessions" / "netpipe-whole.json"
COUNTERS = ROOT / "tests/data/jobs/netpipe-twin/tcp-inter-node-oneway.1.err"
LINEAR_FROM = 1000
RECORD = "netproof_record"
MEASURED = "netproof_measured"
IN_RECORDS = (MEASURED, "netproof_case", "netproof_provenance", "netproof_transport")
"""Keys of a test that its record has, where the recorded report has them itself."""
JOBS = 100_000
"""Job numbers of one copy."""
ROUNDS, LAUNCHES = 4, 2
NOISE = 0.05
VERBS: dict[str, list[str]] = TABLES["evaluations"]["verbs"]
"""Arguments of each verb, in an order in which each finds what it needs."""
Costs = defaultdict[str, list[tuple[float, ...]]]
"""CPU seconds, and peak MB if measured, of what costs them, for each size."""
JUDGING = ("verdict", "diagnose", "stored verdict", "references derive", "history")
"""Verbs whose exit statuses 1 and 3 are answers too."""


class Recorded:
    """A recorded session: for each test its part of the report, and its record or None."""

    def __init__(self, report: Path) -> None:
        document = json.loads(report.read_text())
        self.info = document["session_info"]
        self.tests: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
        for test in (test for run in document["runs"] for test in run["testcases"]):
            if test.get(RECORD):
                record = records.read(report.parent / test[RECORD]["path"])
            else:
                record = _split(test, len(self.tests))
            self.tests.append((test, record))
        self.system = self.tests[0][0]["system"]
        self.partitions = {test["partition"] for test, _ in self.tests}
        self.measured = dict(self._measured())
        for values in self.measured.values():
            # Copies would have disturbed each other.
            values["partition_extras"]["contention_domain"] = values["case"]["partition"]

    def _measured(self) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        """Yield a case and its extras for each that was measured, by partition, …, direction."""
        several = [record["values"] for _, record in self.tests if record]
        parts = [part for one in several for part in one.get(records.ENVIRONMENTS, {}).values()]
        for record in (*several, *parts):
            jobs = record.get("netproof_cases") or {"cases": [], "shared": {}}
            found = [{**jobs["shared"], "case": one["case"]} for one in codec.encode(jobs["cases"])]
            for values in [*found, *filter(None, [record.get(MEASURED)])]:
                yield tuple(map(str, values["case"].values())), values


def _split(test: dict[str, Any], number: int) -> dict[str, Any] | None:
    """Move what was measured from a test into a record, where there is something."""
    test.setdefault("unique_name", f"test_{number}")
    values = {key: test.pop(key) for key in IN_RECORDS if test.get(key)}
    if not values:
        return None
    name = "+".join([test["unique_name"], test["partition"], test["environ"], "1.json"])
    test[RECORD] = {"path": f"session-recorded/{name}"}
    names = ("display_name", "unique_name", "system", "partition", "environ", "job_nodelist")
    own = {**{key: test[key] for key in names}, "outputdir": "", "stagedir": ""}
    own["netproof_kind"] = test.get("netproof_kind", "check")
    return {"test": own, "values": values}


@dataclass(frozen=True)
class Session:
    """A made session, and what it is judged by."""

    folder: Path
    cases: int

    @property
    def report(self) -> Path:
        """Path of its report."""
        return self.folder / "reports" / "run-1.json"

    @property
    def earlier(self) -> list[str]:
        """Paths of the reports of the same session on the days before, the last day first."""
        return [str(path) for path in sorted(self.folder.glob("earlier-*/run-1.json"))]

    def environment(self) -> dict[str, str]:
        """Return the variables of a shell for this session."""
        own = {
            "RFM_CONFIG_PATH": self.folder / "site-config",
            "RFM_REFERENCE_PREFIX": self.folder / "reference-values",
            "RFM_REPORT_FILE": self.folder / "reports" / "run-{sessionid}.json",
            "NETPROOF_STORE": self.folder / "store",
            "PYTHONPATH": ROOT,
        }
        return {**os.environ, **{name: str(value) for name, value in own.items()}}


def make(
    folder: Path, recorded: Recorded, count: int, references: Path, nights: int = 3
) -> Session:
    """Make a session of about ``count`` cases, whole copies of the recorded one, in ``folder``.

    Earlier ones make up the number of ``nights``.
    """
    copies = max(1, round(count / len(recorded.measured)))
    for name in ("reports", "site-config", "reference-values"):
        (folder / name).mkdir(parents=True)
    begun = "session-" + f"{recorded.info['time_start'].partition('+')[0]}-1"
    place = folder / "reports" / begun
    place.mkdir()
    header = {"format": records.FORMAT, "cmdline": "reframe -r"}
    header |= dict.fromkeys(("hostname", "user"), "generated")
    header |= {key: recorded.info[key] for key in ("time_start_unix", "workdir")}
    (place / records.HEADER).write_text(records.sealed(header))
    tests = len(recorded.tests) * copies
    info = {**recorded.info, "num_cases": tests}
    with (folder / "reports" / "run-1.json").open("w") as report:
        report.write(f'{{"session_info": {json.dumps(info, indent=2)}, "runs": [')
        report.write(f'{{"num_cases": {tests}, "run_index": 0, "testcases": [')
        for copy in range(copies):
            for number, (test, record) in enumerate(recorded.tests):
                own = dict(test)
                if record:
                    copied = json.loads(_copied(record, recorded.partitions, copy))
                    name = _named(Path(test[RECORD]["path"]).name, recorded.partitions, copy)
                    own[RECORD] = records.write(place / name, copied["test"], copied["values"])
                report.write(",\n" if copy or number else "\n")
                report.write(_copied(own, recorded.partitions, copy, indent=2))
        report.write("]}]}\n")
    for days in range(1, nights):
        _earlier(folder, days, begun, info)
    _site(folder / "site-config", recorded, copies)
    (folder / "reference-values" / f"{recorded.system}.yaml").write_text(references.read_text())
    return Session(folder, len(recorded.measured) * copies)


def _named(text: str, partitions: set[str], copy: int) -> str:
    """Return a text in which the partitions' names, as words, are those of a copy."""
    if not copy:
        return text
    names = "|".join(map(re.escape, sorted(partitions, key=len, reverse=True)))
    return re.sub(rf"(?<![A-Za-z0-9])({names})(?![A-Za-z0-9])", rf"\1c{copy}", text)


def _copied(values: dict[str, Any], partitions: set[str], copy: int, **form: Any) -> str:
    """Return the JSON of a copy of a test or record, with job numbers of its own."""
    text = _named(json.dumps(values, default=codec.encode, **form), partitions, copy)
    return re.sub(
        r'("jobid": ")(\d+)"', lambda found: f'{found[1]}{int(found[2]) + copy * JOBS}"', text
    )


def _earlier(folder: Path, days: int, begun: str, info: dict[str, Any]) -> None:
    """Make the same session so many days before, of the same records."""
    place = folder / f"earlier-{days:04}" / begun
    shutil.copytree(folder / "reports" / begun, place, copy_function=os.link)
    text = (folder / "reports" / "run-1.json").read_text()
    text = text.replace(info["uuid"], f"{days:08}{info['uuid'][8:]}")
    for key in ("time_start_unix", "time_end_unix"):
        text = text.replace(f'"{key}": {info[key]}', f'"{key}": {info[key] - 86400 * days}', 1)
    (place.parent / "run-1.json").write_text(text)


def _site(folder: Path, recorded: Recorded, copies: int) -> None:
    """Write a configuration that expects the cases of all copies."""
    environments: dict[str, dict[str, Any]] = {}
    partitions: dict[str, dict[str, Any]] = {}
    for values in recorded.measured.values():
        case, extras = values["case"], values["partition_extras"]
        own = partitions.setdefault(case["partition"], {**extras, "environs": []})
        if case["environment"] not in own["environs"]:
            own["environs"].append(case["environment"])
        one = environments.setdefault(
            case["environment"],
            {"name": case["environment"], "features": [], "extras": values["environment_extras"]},
        )
        feature = registry.named(case["benchmark"]).feature(case["function"])
        if feature not in one["features"]:
            one["features"].append(feature)
    for one in environments.values():
        absent = dict.fromkeys(set(registry.FEATURES) - {*one["features"]}, "not recorded")
        one["extras"] = {**one["extras"], "absent": absent}
        one["features"].append("mpi")
    several = []
    for copy in range(copies):
        for name, extras in partitions.items():
            own = _named(name, recorded.partitions, copy)
            left = ("environs", "scheduler", "launcher", "twin", "pace", "tuning_hook")
            more = {key: value for key, value in extras.items() if key not in left}
            more["criteria"] = {
                name: {key: one for key, one in values.items() if key in set_by_sites(name)}
                for name, values in extras.get("criteria", {}).items()
                if set_by_sites(name)
            }
            more |= {"contention_domain": own, "baseline": ""}
            more = json.loads(_named(json.dumps(more), recorded.partitions, copy))
            made = {"name": own, "scheduler": "slurm", "launcher": "srun", "time_limit": "1h"}
            made |= {"environs": extras["environs"], "processor": {"num_cpus": 2}, "extras": more}
            several.append(made)
    several[0]["extras"]["baseline"] = several[0]["environs"][0]
    system = {"name": recorded.system, "hostnames": [], "partitions": several}
    configuration = {"systems": [system], "environments": [*environments.values()]}
    (folder / f"{recorded.system}.py").write_text(f"site_configuration = {configuration!r}\n")
    (folder / "settings.py").write_text((ROOT / "site-config" / "settings.py").read_text())


def cost(session: Session, verb: str) -> tuple[float, float]:
    """Run a verb in a process of its own; return its CPU seconds and the most memory in MB.

    A process begins with the memory of the one that starts it, some 120 MB: no figure is below
    that. Raises NetproofError where the verb had no answer.
    """
    places = {"{report}": [str(session.report)], "{earlier}": session.earlier}
    places |= {"{before}": session.earlier[:1], "{pages}": [str(session.folder / "pages")]}
    command = [str(Path(sys.executable).with_name("netproof"))]
    command += [one for word in VERBS[verb] for one in places.get(word, [word])]
    with (session.folder / "output").open("w+") as output:
        child = subprocess.Popen(
            command, env=session.environment(), cwd=ROOT, stdout=output, stderr=output
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if child.returncode not in ((0, 1, 3) if verb in JUDGING else (0,)):
            said = output.read()[-2000:]
            raise NetproofError(f"{' '.join(command)} ended with {child.returncode}:\n{said}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def text_of(names: Sequence[str]) -> str:
    """Return a step's standard error with the counters of all nodes."""
    lines = [one for one in COUNTERS.read_text().splitlines() if "netproof counters on" in one]
    first, random = lines[0].partition("\t")[0], np.random.default_rng(1)
    made = []
    for name in names:
        digits = str(random.integers(10, 99))
        for line in (line for line in lines if line.startswith(f"{first}\t")):
            numbers = re.sub(r"(?<=\s)(\d)(?=\d{4})", rf"\g<1>{digits}", line.partition("\t")[2])
            made.append(f"netproof counters on {name}\t{numbers}")
    return "\n".join(made) + "\n"


def rounds(names: Sequence[str]) -> list[PairObservation]:
    """Measure some rounds, in which the first node is slow."""
    random = np.random.default_rng(2)
    return [
        PairObservation(number, pair, rate_mb_s=100 * slow * random.lognormal(0, NOISE))
        for number in range(ROUNDS)
        for pair in tournament(names, number)
        for slow in [0.5 if names[0] in pair else 1.0]
    ]


def timed(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of some work."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def of_nodes(counts: Sequence[int]) -> Costs:
    """Return the least CPU seconds of three times of each step for each number of nodes."""
    # As each command has it.
    gc.set_threshold(200_000, 50, 100)
    costs = Costs(list)
    steps = traffic.standing_out, traffic.totals, traffic.carriers_in_rounds, traffic.all_lose
    for count in counts:
        names = [f"node{number:05}" for number in range(count)]
        given, pairs = (Path("launch.err"), text_of(names), names), rounds(names)
        read, settings = counters(*given), Settings.of_site({}, 0)
        seen = [traffic.Seen("one", read, ("eth0",), settings, frozenset())] * LAUNCHES
        works: dict[str, Callable[[], Any]] = {
            "read a launch's counters": partial(counters, *given),
            "decide a round": lambda: next_round(Mode.QUICK, names, pairs, judge(pairs, names)),  # noqa: B023
            f"name who stands out in {LAUNCHES} launches": lambda: [one(seen) for one in steps],  # noqa: B023
        }
        for what, work in works.items():
            costs[what].append((min(timed(work) for _ in range(3)),))
    return costs


def exponent(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """Return by which power of the counts seconds grow from ``LINEAR_FROM`` on, else NaN."""
    pairs = zip(counts, seconds, strict=True)
    points = {count: each for count, each in pairs if count >= 0.9 * LINEAR_FROM}
    if len(points) < 2:
        return math.nan
    return float(np.polyfit(np.log([*points]), np.log([*points.values()]), 1)[0])


def of_verbs(options: argparse.Namespace) -> tuple[Sequence[int], Costs]:
    """Return the cases of the sessions, and each verb's CPU seconds and peak MB of each."""
    recorded = Recorded(options.session or SMALL)
    references = ROOT / "reference-values" / f"{recorded.system}.yaml"
    counts, costs = list[int](), Costs(list)
    for count in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            # What is made need not outlive a power failure.
            with mock.patch.object(os, "fsync"):
                session = make(Path(folder), recorded, count, references, options.nights)
            counts.append(session.cases)
            for verb in filter((options.verbs or VERBS).__contains__, VERBS):
                costs[verb].append(cost(session, verb))
                print(f"{session.cases} {verb} {costs[verb][-1][0]:.1f}", file=sys.stderr)
    return counts, costs


def run(options: argparse.Namespace) -> bool:
    """Print CPU seconds, and of verbs the peak memory, by cases or nodes."""
    nodes = options.nodes
    counts, costs = (nodes, of_nodes(nodes)) if nodes else of_verbs(options)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"CPU seconds{'' if nodes else ' / peak MB'}; load average {load}\n")
    rows = list[list[str]]()
    for what, several in costs.items():
        cells = [" / ".join([f"{s:.2f}", *(f"{mb:,.0f}" for mb in rest)]) for s, *rest in several]
        rows.append([what, *cells, f"{exponent(counts, [s for s, *_ in several]):.2f}"])
    show(("", *counts, "exponent"), rows)
    return True
