"""All of a site that is missing or wrong before anything is measured.

Besides the site's files it checks the references for every case of the matrix, and Slurm's
partition. What it cannot check from here it reports as not checked.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.benchmarks.registry import check_name
from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.case import Case
from netproof.measurement.landmark_table import LANDMARKS, RATES, Better
from netproof.present.document import Block, Cell, Sentences
from netproof.present.wording import counted
from netproof.session import plan
from netproof.session.measured import line_rate_of_case
from netproof.site import folders, module_path, site, slurm
from netproof.site.discover import associations, module_says, plugins_of
from netproof.site.discover import modules_system as modules_system_here
from netproof.site.look import differing, lacking, look, setup_of
from netproof.site.matrix import (
    Matrix,
    PlannedJob,
    environments_in,
    jobs,
    matrix,
    nodes_of,
    partitions_in,
)
from netproof.site.partition import Partition, time_limit_s
from netproof.site.site import SiteError
from netproof.site.slurm import fold
from netproof.verdict.limits import Limits, of_references
from netproof.verdict.references import NotThere, ReferenceFile

_ALIKE = ("access", "env_vars", "modules", "prepare_cmds", "resources", "sched_options")
_ALIKE_EXTRAS = ("interface", "mtu", "link_mbit_s")
"""Keys that must not all be the same for partitions of different switches."""

_UNABLE = re.compile(r"(?i)unable to locate|unknown module|unknown: |cannot be loaded|not found")
"""Messages of modules for one that is missing, in Tcl and in Lua."""


@dataclass
class CheckedSite:
    """Checks of one system: faults, what was not checked, and what is right.

    ``path``: the system's file; ``unchecked`` and ``right``: a sentence each.
    """

    system: str
    path: Path
    faults: list[SiteError] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)

    def wrong(self, place: str, key: str, reason: str, path: Path | str = "") -> None:
        """Add a fault, by default of the system's file."""
        self.faults.append(SiteError(path or self.path, place, key, reason))


def blocks(checked: CheckedSite) -> list[Block]:
    """Return what is right, what is not checked, and what is wrong."""
    count = len(checked.faults)
    wrong = counted(count, "thing is", "things are")
    return [
        Sentences(checked.right, mark="right: "),
        Sentences(checked.unchecked, look="warned", mark="not checked: "),
        Sentences(checked.faults, look="failed", mark="WRONG "),
        Cell(f"{checked.system}: {f'{wrong} wrong' if count else 'ready'}", "strong"),
    ]


def document(checked: CheckedSite) -> dict[str, Any]:
    """Return plain values for ``json``."""
    from netproof.present import documents

    return {
        "system": checked.system,
        "verdict": "fail" if checked.faults else "pass",
        "faults": [
            documents.some(one, "place", "key", "reason", file="path") for one in checked.faults
        ],
        "right": checked.right,
        "not_checked": checked.unchecked,
    }


def check(
    asked: str | None, *, full: bool = False, job: bool = False, wait_s: float = 600
) -> CheckedSite:
    """Return all that is missing or wrong for a system, or for one partition of it.

    ``job``: whether a short job in each partition looks too, which may wait ``wait_s`` for nodes.

    Raises NetproofError where the system, the folder of configuration or that of references is not
    known.
    """
    folder = folders.of_site()
    configuration, paths, faults = site.survey(folder)
    name, _, partition = (asked or site.here(configuration, paths)).partition(":")
    checked = CheckedSite(name, paths.get(name, folder), list(faults))
    try:
        expected = matrix(configuration, name, [partition] if partition else [], all_functions=full)
    except NetproofError:
        if not faults:
            raise
        checked.unchecked.append(
            f"references and Slurm of {asked or name}: unusable until the files are right"
        )
        return checked
    entries = partitions_in(configuration, name)
    partitions = [entries[one] for one in entries if one in expected.partitions]
    environments = {
        one: entry
        for one, entry in environments_in(configuration, name).items()
        if any(one in partition["environs"] for partition in partitions)
    }
    if not expected.cases:
        place = f"{'partition' if partition else 'system'} {asked or name}"
        why = "none of them has a benchmark, so that nothing would be measured; name benchmarks"
        checked.wrong(place, "environs", f"{why} among an environment's features")
    elif not faults:
        checked.right.append(
            f"{checked.path}: {counted(len(partitions), 'partition')},"
            f" {counted(len(environments), 'environment')}, {counted(len(expected.cases), 'case')}"
        )
    _twins(checked, name, entries.values())
    _environments(checked, environments, job=job)
    no_modules = module_path.missing(configuration, name, expected)
    if no_modules and shutil.which("sinfo"):
        checked.wrong(f"system {name}", "MODULEPATH", no_modules, "this shell")
    elif no_modules:
        checked.unchecked.append(f"modules: no Slurm here, and {no_modules}")
    if not faults:
        _reframe(checked, name)
    _references(checked, expected, environments)
    if _slurm(checked, expected, partitions):
        (system,) = (one for one in configuration["systems"] if one["name"] == name)
        setups = {
            (entry["name"], one): setup_of(system, entry, environments[one])
            for entry in partitions
            for one in entry["environs"]
            if one in environments
        }
        _accounting(checked, environments)
        left = module_path.left_to_jobs(configuration, name)
        _modules(checked, setups, system.get("modules_system", "nomod"), left)
        if job and not checked.faults:
            for entry in partitions:
                _by_job(checked, entry, environments, setups, wait_s)
        elif job:
            checked.unchecked.append("what a job sees: put right what is wrong first")
    return checked


def _twins(checked: CheckedSite, system: str, partitions: Iterable[Any]) -> None:
    """Refuse copied partitions of two switches in which nothing changed that a job depends on."""
    seen: dict[str, Any] = {}
    for entry in partitions:
        effective = [entry.get(key) for key in _ALIKE]
        effective += [entry["extras"][key] for key in _ALIKE_EXTRAS]
        first = seen.setdefault(repr(effective), entry)
        if first["extras"]["switch"] != entry["extras"]["switch"]:
            same = f"{', '.join(_ALIKE[1:])} and {', '.join(_ALIKE_EXTRAS)}"
            why = (
                f"is that of {first['name']}, and so are {same}: both would measure one switch; say"
                " what leads jobs to the other"
            )
            checked.wrong(f"partition {system}:{entry['name']}", "access", why)


def _environments(
    checked: CheckedSite, environments: Mapping[str, Mapping[str, Any]], *, job: bool
) -> None:
    needed = []
    for name, entry in environments.items():
        unusable = entry["extras"]["unusable"]
        if unusable:
            checked.wrong(f"environment {name}", "extras['unusable']", unusable)
        programs = dict.fromkeys(
            benchmark.program(function.name)
            for benchmark in registry.STARTED
            for function in benchmark.functions
            if benchmark.feature(function.name) in entry.get("features", [])
        )
        modules = [
            module if isinstance(module, str) else module["name"]
            for module in entry.get("modules", [])
        ]
        needed.append(f"{name} {', '.join([*modules, *programs])}")
    if not job:
        checked.unchecked.append(
            f"what only a job sees (--job), that nodes have: {'; '.join(needed)}"
        )


def _reframe(checked: CheckedSite, system: str) -> None:
    """Check that ReFrame accepts the configuration: it knows the keys that netproof does not."""
    program = shutil.which("reframe")
    if program is None:
        checked.unchecked.append("whether ReFrame takes the file: reframe is not in PATH")
        return
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [program, "--nocolor", f"--system={system}", "--show-config=systems/0/name"],
            cwd=folder,
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode == 0:
        checked.right.append("ReFrame takes the configuration")
        return
    said = " | ".join(line for line in (ran.stdout + ran.stderr).splitlines() if line.strip())
    if "could not find a sane" in said:
        if shutil.which("sinfo") is None:
            checked.unchecked.append(f"whether ReFrame can load modules: not available, {said}")
            return
        said += f"; modules_system is to be what this shell has: {modules_system_here()!r}"
    checked.wrong(f"system {system}", "ReFrame", f"refuses it: {said}")


def _references(
    checked: CheckedSite, expected: Matrix, environments: Mapping[str, Mapping[str, Any]]
) -> None:
    """Check that every expected case has the references without which it would fail."""
    path = folders.of_references() / f"{checked.system}.yaml"
    try:
        references = ReferenceFile(path)
    except NetproofError as error:
        reason = str(error).removeprefix(f"{path}: ")
        checked.wrong("the file", "references", reason, path)
        return
    missing: dict[tuple[Any, ...], list[tuple[Case, NotThere]]] = defaultdict(list)
    lacking: dict[tuple[str, str], list[Case]] = defaultdict(list)
    broken: dict[str, None] = {}
    unbounded = 0
    for case in expected.cases:
        check = check_name(case.benchmark, case.function)
        try:
            entries = references.find(check, case)
        except NotThere as error:
            # One fault for all environments of a partition that lack the same key.
            missing[(*error.keys[1:2], len(error.keys), error.keys[-1])].append((case, error))
            continue
        except NetproofError as error:
            broken[str(error)] = None
            continue
        unbounded += not any(_bounds_speed(*one) for one in of_references(entries).items())
        mpi_over_tcp = environments[case.environment]["extras"]["mpi_over_tcp"]
        for variable in _variables(case, expected.partitions[case.partition], mpi_over_tcp):
            if variable not in entries:
                lacking[check, variable].append(case)
    for reason in broken:
        checked.wrong("the file", "references", reason.removeprefix(f"{path}:"), path)
    for several in missing.values():
        checked.faults.append(_missing(path, several))
    for (check, variable), cases in lacking.items():
        entry = f"{variable}: [0, null, null, {LANDMARKS[variable].unit}]"
        why = f"is not there for {_places(cases)}, and a landmark without an entry fails"
        checked.wrong(check, variable, f"{why}; add {entry} to show it unjudged", path)
    if not (missing or lacking or broken):
        said = f"{path}: has references for every case"
        if unbounded:
            said += (
                f"; in {unbounded} of {len(expected.cases)} no time and no rate is bounded, so the"
                " criteria alone judge these until 'netproof references derive --write'"
            )
        checked.right.append(said)


def _bounds_speed(name: str, limits: Limits) -> bool:
    """Check whether what is slower can be outside."""
    landmark = LANDMARKS.get(name)
    if landmark is not None and landmark.better is Better.LARGER:
        return math.isfinite(limits.low)
    of_time = landmark is None or landmark.better is Better.SMALLER
    return of_time and math.isfinite(limits.high)


def _missing(path: Path, several: list[tuple[Case, NotThere]]) -> SiteError:
    """Return one fault for all checks that lack the same keys."""
    error = several[0][1]
    cases, checks = [case for case, _ in several], dict.fromkeys(str(e.keys[0]) for _, e in several)
    key, alongside = error.keys[-1], ", ".join(map(str, error.alongside))
    remedy = f"write {key}: alongside {alongside}" if alongside else f"write {key}:"
    if isinstance(key, str):
        remedy += ", or make one of these an expression that fits it"
    if len(error.keys) == 1:
        key, remedy = "the check", "give it $index and entries as in example.yaml"
    why = f"is not there, so {counted(len(cases), 'case')} on {_places(cases)} would fail; {remedy}"
    return SiteError(path, ", ".join(checks), str(key), why)


def _places(cases: Iterable[Case]) -> str:
    """Return the partitions of cases with their environments and rank counts."""
    environments: dict[str, dict[str, None]] = defaultdict(dict)
    ranks = set()
    for case in cases:
        environments[case.partition][case.environment] = None
        ranks.add(case.ranks)
    named = "; ".join(f"{name} ({', '.join(several)})" for name, several in environments.items())
    return f"{named} at {', '.join(map(str, sorted(ranks)))} ranks"


def _variables(case: Case, partition: Partition, mpi_over_tcp: bool) -> list[str]:
    """Return the landmarks that a case defines: all need a reference."""
    if not registry.function_of(case).rated:
        return ["latency_us"]
    left = set()
    if line_rate_of_case(vars(partition), case, mpi_over_tcp=mpi_over_tcp) is None:
        left.add("line_rate_share")
    if not plan.has_twin(partition, case.ranks_per_node):
        left |= set(twin.NAMES)
    left |= {name for name, size in RATES.items() if size > partition.max_message_bytes}
    return [name for name in LANDMARKS if name not in left]


def _slurm(
    checked: CheckedSite, expected: Matrix, partitions: Collection[Mapping[str, Any]]
) -> bool:
    """Check that Slurm has the partitions, and can run the largest job of each.

    Return whether it answers.
    """
    if shutil.which("sinfo") is None:
        checked.unchecked.append("partitions, nodes and time limits: no Slurm here")
        return False
    try:
        slurm.answers()
        known = slurm.partitions()
    except NetproofError as error:
        checked.wrong(f"system {checked.system}", "scontrol", str(error), "Slurm")
        return False
    before = len(checked.faults)
    planned: dict[str, list[PlannedJob]] = defaultdict(list)
    for job in jobs(expected):
        planned[job.partition].append(job)
    for entry in partitions:
        place = f"partition {checked.system}:{entry['name']}"
        several = planned[entry["name"]]
        needed = max((nodes_of(job, expected) for job in several), default=0)
        access = entry.get("access", [])
        named = slurm.names_in(access)
        for option in slurm.options_in(access, slurm.OWN):
            checked.wrong(
                place,
                "access",
                f"has {option!r}, which each job has of its own: leave it out; 'time_limit',"
                " extras['nodes'] and extras['rank_counts'] say how long and how large a job is",
            )
        if not named:
            none = "names no partition of Slurm's"
            if slurm.options_in(access, slurm.CHOOSING):
                checked.unchecked.append(f"{place}: {' '.join(access)} {none}, but chooses nodes")
            else:
                remedy = f"add '--partition=NAME', of {', '.join(known)}"
                why = f"is {access}, and {none}: jobs would go to its default one; {remedy}"
                checked.wrong(place, "access", why)
            continue
        for name in named:
            if name not in known:
                why = f"names {name!r}, which Slurm does not have; it has {', '.join(known)}"
                checked.wrong(place, "access", why)
                continue
            right = len(checked.faults)
            _fits(checked, place, entry, known[name], needed)
            seconds, limit = time_limit_s(entry), known[name].limit_s
            if seconds is not None and limit is not None and seconds > limit:
                allows = f"Slurm's partition {name} allows {limit / 60:g} minutes"
                why = f"{allows}: its jobs would be refused or wait for ever"
                checked.wrong(place, "time_limit", f"is {entry['time_limit']}, and {why}")
            if len(checked.faults) == right:
                nodes = {job: nodes_of(job, expected) for job in several}
                _every_job(checked, place, entry, nodes)
    if len(checked.faults) == before:
        names = ", ".join(entry["name"] for entry in partitions)
        checked.right.append(f"Slurm answers and can run the largest job on {names}")
    return True


def _fits(
    checked: CheckedSite,
    place: str,
    entry: Mapping[str, Any],
    known: slurm.SlurmPartition,
    needed: int,
) -> None:
    stated = entry["extras"]["nodes"]
    if len(known.nodes) < stated:
        why = f"is {stated}, and Slurm's partition {known.name} has {len(known.nodes)}"
        checked.wrong(place, "extras['nodes']", why)
    reason = known.cannot_run(needed)
    if reason:
        checked.wrong(place, known.name, reason, "Slurm")
        return
    usable = sum(node.usable for node in known.nodes)
    most, refusal = slurm.most_nodes(_access(entry), usable)
    if not most:
        checked.wrong(place, "access", _refused(entry, refusal))
        return
    if most < min(usable, max(stated, needed)):
        why = f"is {stated}, and Slurm lets a job have {most} of {usable} nodes: {refusal}"
        checked.wrong(place, "extras['nodes']", why)
    elif (count := min(most, stated)) < usable:
        limit = f": {refusal}" if count == most else " by extras['nodes']"
        checked.unchecked.append(
            f"{place}: pairs of nodes that are in no job together, since a job of rounds of pairs"
            f" has {count} of {usable} usable nodes{limit}"
        )


def _every_job(
    checked: CheckedSite,
    place: str,
    entry: Mapping[str, Any],
    nodes: Mapping[PlannedJob, int],
) -> None:
    """Check by ``sbatch --test-only`` that Slurm takes each job with ReFrame's options for it."""
    seconds = time_limit_s(entry)
    limit = [] if seconds is None else [f"--time={-(-seconds // 60)}"]
    by_options: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for job, count in nodes.items():
        per_node = 1 if registry.named(job.benchmark).by_protocol else job.ranks // count
        tasks = (f"--ntasks={count * per_node}", f"--ntasks-per-node={per_node}")
        by_options[(*_access(entry), *tasks, *limit)].append(job.what())
    for options, whats in by_options.items():
        try:
            slurm.test(options)
        except NetproofError as error:
            what = ", ".join(dict.fromkeys(whats))
            checked.wrong(place, f"the job of {what}", _refused(entry, str(error)))
            return


_REMEDIES = {
    "exclusive": "netproof takes whole nodes: ask for a partition or a reservation that allows it",
    "Invalid account": "name an account of yours, '--account=NAME', of {accounts}",
    "Invalid qos": "name a QOS of yours, '--qos=NAME', of {qos}",
    "Invalid feature": "'sinfo -o %f' lists the features for --constraint",
    "reservation is invalid": "'scontrol show reservation' lists those that there are",
    "node configuration is not available": "no node of it has what this asks for: memory, CPUs,"
    " GPUs, or a node of '--nodelist' that is in another partition",
}
"""Remedies for refusals of ``sbatch --test-only``, by words in them."""


def _access(entry: Mapping[str, Any]) -> list[str]:
    """Return a job's options: it takes whole nodes unless the site says otherwise."""
    access = entry.get("access", [])
    return access if slurm.options_in(access, slurm.SHARING) else [*access, "--exclusive"]


def _refused(entry: Mapping[str, Any], refusal: str) -> str:
    """Return Slurm's refusal of any job of a partition, with the remedy."""
    said = refusal.rpartition("--wrap=true: ")[2]
    accounts = associations()
    known = {
        "accounts": ", ".join(dict.fromkeys(one for one, _, _ in accounts)) or "those of sacctmgr",
        "qos": ", ".join(dict.fromkeys(qos for *_, several in accounts for qos in several))
        or "those of sacctmgr",
    }
    remedies = [remedy for words, remedy in _REMEDIES.items() if words in said]
    remedy = remedies[0].format(**known) if remedies else "ask whoever runs this Slurm"
    return f"is {entry.get('access', [])}, and Slurm refuses such a job: {said}; {remedy}"


def _accounting(checked: CheckedSite, environments: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that Slurm's accounting answers, by which ReFrame follows jobs, and its PMI plugins."""
    try:
        slurm.ask("sacct", "--noheader", "--allocations", "--starttime=now")
    except NetproofError as error:
        why = f"{error}; ReFrame follows jobs by it: slurmdbd has to run"
        checked.wrong(f"system {checked.system}", "sacct", why, "Slurm")
    try:
        plugins = plugins_of(slurm.ask("srun", "--mpi=list", merged=True))
    except NetproofError as error:
        checked.unchecked.append(f"PMI plugins: {error}")
        return
    for name, entry in environments.items():
        pmi = entry["extras"]["pmi"]
        if pmi not in plugins:
            why = f"is {pmi!r}, and srun has {', '.join(plugins)} (srun --mpi=list)"
            checked.wrong(f"environment {name}", "extras['pmi']", why)


def _modules(
    checked: CheckedSite, setups: Mapping[tuple[str, str], Sequence[str]], kind: str, left: bool
) -> None:
    """Check that a shell here can load each environment's modules, as jobs will, and ReFrame.

    ``kind``: ReFrame's name of the modules; ``left``: whether only jobs load them.
    """
    for name, setup in {name: setup for (_, name), setup in setups.items()}.items():
        loading = [one.removeprefix("module load ") for one in setup if one.startswith("module l")]
        if not loading:
            continue
        if kind == "nomod":
            reason = f"is 'nomod' or not there, and this shell has {modules_system_here()!r}"
            checked.wrong(f"system {checked.system}", "modules_system", reason)
            return
        said = module_says(*(f"{line} || echo netproof: failed" for line in setup))
        unable = [line for line in said.splitlines() if _UNABLE.search(line)]
        reason = ""
        if not left and (foreign := module_path.no_python(loading, kind)):
            reason = (
                f"one of them prints {foreign!r} on standard output, where ReFrame reads what to"
                " do: let it print on standard error ('puts stderr')"
            )
        elif unable:
            reason = f"{unable[0].strip()}; 'module -t avail' lists those that there are"
        if reason:
            checked.wrong(f"environment {name}", "modules", f"{', '.join(loading)}: {reason}")


def _by_job(
    checked: CheckedSite,
    entry: Mapping[str, Any],
    environments: Mapping[str, Mapping[str, Any]],
    setups: Mapping[tuple[str, str], Sequence[str]],
    wait_s: float,
) -> None:
    """Compare what a short job finds of a partition and its environments with the site."""
    own, place = entry["name"], f"partition {checked.system}:{entry['name']}"
    trying = {name: one for name, one in environments.items() if (own, name) in setups}
    extras = entry["extras"]
    try:
        looked = look(
            folders.of_site().absolute().parent,
            _access(entry),
            extras["nodes"],
            {name: (setups[own, name], [one["extras"]["pmi"]]) for name, one in trying.items()},
            wait_s,
        )
    except NetproofError as error:
        checked.wrong(place, "a job", str(error))
        return
    before = len(checked.faults)
    for key, reason in differing(extras, looked):
        checked.wrong(place, key, reason)
    for name, one in looked.environments.items():
        for key, reason in lacking(trying[name], one, extras):
            checked.wrong(f"environment {name}", key, f"on {own} {reason}")
    if len(checked.faults) == before:
        nodes = fold(node.name for node in looked.nodes)
        checked.right.append(f"a job on {nodes} of {own}: {', '.join(trying)} run there")
