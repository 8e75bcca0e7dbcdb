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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.benchmarks.registry import check_name
from netproof.errors import NetproofError, listed
from netproof.measurement import twin
from netproof.measurement.case import Case
from netproof.measurement.landmarks import LANDMARKS, RATES, Better
from netproof.present import documents
from netproof.present.document import Block, Cell, Sentences
from netproof.present.wording import counted
from netproof.session import plan
from netproof.session.measured import line_rate_of_case
from netproof.site import folders, module_path, site, slurm
from netproof.site.discover import OF_INTERFACES, associations, module_says, plugins_of
from netproof.site.discover import modules_system as modules_system_here
from netproof.site.look import differing, lacking, look, setup_of
from netproof.site.matrix import PlannedJob, jobs, matrix, nodes_of
from netproof.site.partition import job_limit_s, time_limit_s
from netproof.site.site import SiteError
from netproof.site.slurm import fold
from netproof.verdict.limits import Limits, of_references
from netproof.verdict.references import NotThere, ReferenceFile

_ALIKE = ("access", "env_vars", "modules", "prepare_cmds", "resources", "sched_options")
_ALIKE_EXTRAS = ("interface", "mtu", "link_mbit_s")
"""Keys that must not all be the same for partitions of different switches."""

_UNABLE = re.compile(r"(?i)unable to locate|unknown module|unknown: |cannot be loaded|not found")
"""Messages of modules for one that is missing, in Tcl and in Lua."""

_INTERFACES = re.compile(r"(?!all$)[A-Za-z][\w.-]*(,[A-Za-z][\w.-]*)*")
"""Interfaces with commas between them, and no addresses or RDMA devices."""

Entry = Mapping[str, Any]


class CheckedSite:
    """Checks of one system, or of one partition of it.

    ``path``: the system's file; ``faults``: all that is wrong; ``unchecked`` and ``right``: a
    sentence each. Raises NetproofError where the system, the folder of configuration or that of
    references is not known.
    """

    def __init__(self, asked: str | None, *, full: bool, job: bool, wait_s: float) -> None:
        folder = folders.of_site()
        configuration, paths, faults = site.survey(folder)
        asked = asked or site.here(configuration, paths)
        name, _, partition = asked.partition(":")
        self.system, self.path, self.faults = name, paths.get(name, folder), list(faults)
        self.unchecked: list[str] = []
        self.right: list[str] = []
        several = [partition] if partition else []
        try:
            self.expected = matrix(configuration, name, several, all_functions=full)
        except NetproofError:
            if not faults:
                raise
            unusable = "unusable until the files are right"
            self.unchecked.append(f"references and Slurm of {asked}: {unusable}")
            return
        entries = self.expected.entries
        self.partitions = [entries[one] for one in entries if one in self.expected.partitions]
        self.environments: Mapping[str, Entry] = {
            one: entry
            for one, entry in self.expected.environments.items()
            if any(one in partition["environs"] for partition in self.partitions)
        }
        if not self.expected.cases:
            place = f"{'partition' if partition else 'system'} {asked}"
            why = "none of them has a benchmark, so that nothing would be measured; name benchmarks"
            self.wrong(place, "environs", f"{why} among an environment's features")
        elif not faults:
            counts = (
                counted(len(self.partitions), "partition"),
                counted(len(self.environments), "environment"),
                counted(len(self.expected.cases), "case"),
            )
            self.right.append(f"{self.path}: {', '.join(counts)}")
        self._check_twins(entries.values())
        self._check_networks()
        self._check_environments(job=job)
        no_modules = module_path.missing(configuration, name, self.expected)
        if no_modules and shutil.which("sinfo"):
            self.wrong(f"system {name}", "MODULEPATH", no_modules, "this shell")
        elif no_modules:
            self.unchecked.append(f"modules: no Slurm here, and {no_modules}")
        if not faults:
            self._check_with_reframe()
        self._check_references()
        if self._check_slurm():
            (described,) = (one for one in configuration["systems"] if one["name"] == name)
            self.setups = {
                (entry["name"], one): setup_of(described, entry, self.environments[one])
                for entry in self.partitions
                for one in entry["environs"]
                if one in self.environments
            }
            self._check_accounting()
            left = module_path.left_to_jobs(configuration, name)
            self._check_modules(described.get("modules_system", "nomod"), left)
            if job and not self.faults:
                for entry in self.partitions:
                    self._check_by_job(entry, wait_s)
            elif job:
                self.unchecked.append("what a job sees: put right what is wrong first")

    def wrong(self, place: str, key: str, reason: str, path: Path | str = "") -> None:
        """Add a fault, by default of the system's file."""
        self.faults.append(SiteError(path or self.path, place, key, reason))

    def blocks(self) -> list[Block]:
        """Return what is right, what is not checked, and what is wrong."""
        count = len(self.faults)
        wrong = counted(count, "thing is", "things are")
        return [
            Sentences(self.right, mark="right: "),
            Sentences(self.unchecked, look="warned", mark="not checked: "),
            Sentences(self.faults, look="failed", mark="WRONG "),
            Cell(f"{self.system}: {f'{wrong} wrong' if count else 'ready'}", "strong"),
        ]

    def document(self) -> dict[str, Any]:
        """Return plain values for ``json``."""
        return {
            "system": self.system,
            "verdict": "fail" if self.faults else "pass",
            "faults": [
                documents.some(one, "place", "key", "reason", "file=path") for one in self.faults
            ],
            "right": self.right,
            "not_checked": self.unchecked,
        }

    def _check_twins(self, partitions: Iterable[Entry]) -> None:
        """Refuse copied partitions of two switches where nothing that a job depends on changed."""
        seen: dict[str, Entry] = {}
        for entry in partitions:
            effective = [entry.get(key) for key in _ALIKE]
            effective += [entry["extras"][key] for key in _ALIKE_EXTRAS]
            first = seen.setdefault(repr(effective), entry)
            if first["extras"]["switch"] != entry["extras"]["switch"]:
                same = f"{', '.join(_ALIKE[1:])} and {', '.join(_ALIKE_EXTRAS)}"
                self.wrong(
                    f"partition {self.system}:{entry['name']}",
                    "access",
                    f"is that of {first['name']}, and so are {same}: both would measure one switch;"
                    " say what leads jobs to the other",
                )

    def _check_networks(self) -> None:
        """Check the unit of each link's rate, and that MPI is led to the interface under test."""
        others: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for entry in self.partitions:
            extras, place = entry["extras"], f"partition {self.system}:{entry['name']}"
            rate, own = extras["link_mbit_s"], extras["rails"] or [extras["interface"]]
            # Fast Ethernet has 100; of an emulated link nodes report another rate.
            exempt = (rate == 100 and not extras["rdma"]) or "link_mbit_s" in extras["may_differ"]
            if rate < 1000 and not exempt:
                why = f"is {rate} Mbit/s, slower than a cluster's links: {rate} Gbit/s is {rate}000"
                self.wrong(place, "extras['link_mbit_s']", why)
            if extras["rdma"]:
                continue
            for name in (one for one in entry["environs"] if one in self.environments):
                # As for a job, what the environment sets stands.
                last: dict[str, tuple[str, str]] = {}
                for at, one in ((place, entry), (f"environment {name}", self.environments[name])):
                    last |= {key: (at, str(value)) for key, value in one.get("env_vars", [])}
                for key, (at, value) in last.items():
                    named = key in OF_INTERFACES and _INTERFACES.fullmatch(value)
                    if named and not {*own} & {*value.split(",")}:
                        is_own = f"{entry['name']}'s interface is {listed(own)}"
                        others[at, f"{value}, and {is_own}: let them agree"][key] = None
        for (at, why), keys in others.items():
            self.wrong(at, "env_vars", f"{' and '.join(keys)}: {why}")

    def _check_environments(self, *, job: bool) -> None:
        needed = []
        for name, entry in self.environments.items():
            if unusable := entry["extras"]["unusable"]:
                self.wrong(f"environment {name}", "extras['unusable']", unusable)
            programs = dict.fromkeys(
                benchmark.program(function.name)
                for benchmark in registry.STARTED
                for function in benchmark.functions
                if benchmark.feature(function.name) in entry.get("features", [])
            )
            modules = [
                one if isinstance(one, str) else one["name"] for one in entry.get("modules", [])
            ]
            needed.append(f"{name} {', '.join([*modules, *programs])}")
        if not job:
            nodes_have = f"what only a job sees (--job), that nodes have: {'; '.join(needed)}"
            self.unchecked.append(nodes_have)

    def _check_with_reframe(self) -> None:
        """Check that ReFrame accepts the configuration: it knows keys that netproof does not."""
        program = shutil.which("reframe")
        if program is None:
            self.unchecked.append("whether ReFrame takes the file: reframe is not in PATH")
            return
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [program, "--nocolor", f"--system={self.system}", "--show-config=systems/0/name"],
                cwd=folder,
                env={**os.environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                check=False,
            )
        if ran.returncode == 0:
            self.right.append("ReFrame takes the configuration")
            return
        said = " | ".join(line for line in (ran.stdout + ran.stderr).splitlines() if line.strip())
        if "could not find a sane" in said:
            if shutil.which("sinfo") is None:
                why = f"whether ReFrame can load modules: not available, {said}"
                self.unchecked.append(why)
                return
            said += f"; modules_system is to be what this shell has: {modules_system_here()!r}"
        self.wrong(f"system {self.system}", "ReFrame", f"refuses it: {said}")

    def _check_references(self) -> None:
        """Check that every expected case has the references without which it would fail."""
        path = folders.of_references() / f"{self.system}.yaml"
        try:
            references = ReferenceFile(path)
        except NetproofError as error:
            self.wrong("the file", "references", str(error).removeprefix(f"{path}: "), path)
            return
        missing: dict[tuple[Any, ...], list[tuple[Case, NotThere]]] = defaultdict(list)
        lacking: dict[tuple[str, str], list[Case]] = defaultdict(list)
        broken: dict[str, None] = {}
        unbounded = 0
        for case in self.expected.cases:
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
            for variable in self._variables(case):
                if variable not in entries:
                    lacking[check, variable].append(case)
        for reason in broken:
            self.wrong("the file", "references", reason.removeprefix(f"{path}:"), path)
        for several in missing.values():
            self.wrong(*_missing(several), path)
        for (check, variable), cases in lacking.items():
            entry = f"{variable}: [0, null, null, {LANDMARKS[variable].unit}]"
            why = f"is not there for {_places(cases)}, and a landmark without an entry fails"
            self.wrong(check, variable, f"{why}; add {entry} to show it unjudged", path)
        if not (missing or lacking or broken):
            said = f"{path}: has references for every case"
            if unbounded:
                said += (
                    f"; in {unbounded} of {len(self.expected.cases)} no time and no rate is"
                    " bounded, so the criteria alone judge these until 'netproof references derive"
                    " --write'"
                )
            self.right.append(said)

    def _variables(self, case: Case) -> list[str]:
        """Return the landmarks that a case defines: all need a reference."""
        if not registry.function_of(case).rated:
            return ["latency_us"]
        partition, left = self.expected.partitions[case.partition], set()
        over_tcp = self.environments[case.environment]["extras"]["mpi_over_tcp"]
        if line_rate_of_case(vars(partition), case, mpi_over_tcp=over_tcp) is None:
            left.add("line_rate_share")
        if not plan.has_twin(partition, case.ranks_per_node):
            left |= set(twin.NAMES)
        left |= {name for name, size in RATES.items() if size > partition.max_message_bytes}
        return [name for name in LANDMARKS if name not in left]

    def _check_slurm(self) -> bool:
        """Check that Slurm has the partitions, and can run the largest job of each.

        Return whether it answers.
        """
        if shutil.which("sinfo") is None:
            self.unchecked.append("partitions, nodes and time limits: no Slurm here")
            return False
        try:
            slurm.answers()
            known = slurm.partitions()
        except NetproofError as error:
            self.wrong(f"system {self.system}", "scontrol", str(error), "Slurm")
            return False
        before = len(self.faults)
        planned: dict[str, dict[PlannedJob, int]] = defaultdict(dict)
        for job in jobs(self.expected):
            planned[job.partition][job] = nodes_of(job, self.expected)
        for entry in self.partitions:
            place, access = f"partition {self.system}:{entry['name']}", entry.get("access", [])
            for option in slurm.options_in(access, slurm.OWN):
                self.wrong(
                    place,
                    "access",
                    f"has {option!r}, which each job has of its own: leave it out; 'time_limit',"
                    " extras['nodes'] and extras['rank_counts'] say how long and how large a job"
                    " is",
                )
            named, none = slurm.names_in(access), "names no partition of Slurm's"
            if not named and slurm.options_in(access, slurm.CHOOSING):
                self.unchecked.append(f"{place}: {' '.join(access)} {none}, but chooses nodes")
            elif not named:
                remedy = f"add '--partition=NAME', of {', '.join(known)}"
                why = f"is {access}, and {none}: jobs would go to its default one; {remedy}"
                self.wrong(place, "access", why)
            for name in named:
                if name in known:
                    self._check_fit(place, entry, known[name], planned[entry["name"]])
                else:
                    why = f"names {name!r}, which Slurm does not have; it has {', '.join(known)}"
                    self.wrong(place, "access", why)
        if len(self.faults) == before:
            names = ", ".join(entry["name"] for entry in self.partitions)
            self.right.append(f"Slurm answers and can run the largest job on {names}")
        return True

    def _check_fit(
        self,
        place: str,
        entry: Entry,
        known: slurm.SlurmPartition,
        nodes: Mapping[PlannedJob, int],
    ) -> None:
        """Check that jobs, each of so many ``nodes``, fit into a partition of Slurm's."""
        before, stated = len(self.faults), entry["extras"]["nodes"]
        needed = max(nodes.values(), default=0)
        if len(known.nodes) < stated:
            why = f"is {stated}, and Slurm's partition {known.name} has {len(known.nodes)}"
            self.wrong(place, "extras['nodes']", why)
        if reason := known.cannot_run(needed):
            self.wrong(place, known.name, reason, "Slurm")
        else:
            usable = sum(map(slurm.usable, known.nodes.values()))
            most, refusal = slurm.most_nodes(_access(entry), usable)
            if not most:
                self.wrong(place, "access", _refused(entry, refusal))
            elif most < min(usable, max(stated, needed)):
                why = f"is {stated}, and Slurm lets a job have {most} of {usable} nodes: {refusal}"
                self.wrong(place, "extras['nodes']", why)
            elif (count := min(most, stated)) < usable:
                limit = f": {refusal}" if count == most else " by extras['nodes']"
                self.unchecked.append(
                    f"{place}: pairs of nodes that are in no job together, since a job of rounds of"
                    f" pairs has {count} of {usable} usable nodes{limit}"
                )
        seconds, limit_s = job_limit_s(entry), known.limit_s
        of_jobs_s = entry["extras"].get("job_limit_s")
        for key, text, asked_s in (
            ("time_limit", entry.get("time_limit"), time_limit_s(entry)),
            ("extras['job_limit_s']", f"{of_jobs_s} s", of_jobs_s),
        ):
            if asked_s is not None and limit_s is not None and asked_s > limit_s:
                allows = f"Slurm's partition {known.name} allows {limit_s / 60:g} minutes"
                why = f"{allows}: its jobs would be refused or wait for ever"
                self.wrong(place, key, f"is {text}, and {why}")
        if len(self.faults) > before:
            return
        # Slurm is asked, by --test-only, for each job with ReFrame's options for it.
        limited = [] if seconds is None else [f"--time={-(-seconds // 60)}"]
        by_options: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for job, count in nodes.items():
            per_node = 1 if registry.named(job.benchmark).by_protocol else job.ranks // count
            tasks = (f"--ntasks={count * per_node}", f"--ntasks-per-node={per_node}")
            by_options[(*_access(entry), *tasks, *limited)].append(job.what())
        for options, whats in by_options.items():
            try:
                slurm.test(options)
            except NetproofError as error:
                what = ", ".join(dict.fromkeys(whats))
                self.wrong(place, f"the job of {what}", _refused(entry, str(error)))
                return

    def _check_accounting(self) -> None:
        """Check that Slurm's accounting, by which ReFrame follows jobs, answers; PMI plugins."""
        try:
            slurm.ask("sacct", "--noheader", "--allocations", "--starttime=now")
        except NetproofError as error:
            why = f"{error}; ReFrame follows jobs by it: slurmdbd has to run"
            self.wrong(f"system {self.system}", "sacct", why, "Slurm")
        try:
            plugins = plugins_of(slurm.ask("srun", "--mpi=list", merged=True))
        except NetproofError as error:
            self.unchecked.append(f"PMI plugins: {error}")
            return
        for name, entry in self.environments.items():
            pmi = entry["extras"]["pmi"]
            if pmi not in plugins:
                why = f"is {pmi!r}, and srun has {', '.join(plugins)} (srun --mpi=list)"
                self.wrong(f"environment {name}", "extras['pmi']", why)

    def _check_modules(self, kind: str, left: bool) -> None:
        """Check that a shell here can load each environment's modules, as jobs will, and ReFrame.

        ``kind``: ReFrame's name of the modules; ``left``: whether only jobs load them.
        """
        for name, setup in {name: setup for (_, name), setup in self.setups.items()}.items():
            load = "module load "
            loading = [one.removeprefix(load) for one in setup if one.startswith(load)]
            if not loading:
                continue
            if kind == "nomod":
                reason = f"is 'nomod' or not there, and this shell has {modules_system_here()!r}"
                self.wrong(f"system {self.system}", "modules_system", reason)
                return
            said = module_says(*(f"{line} || echo netproof: failed" for line in setup))
            unable = [line for line in said.splitlines() if _UNABLE.search(line)]
            reason = ""
            if not left and (foreign := module_path.no_python(loading, kind)):
                reason = (
                    f"one of them prints {foreign!r} on standard output, where ReFrame reads what"
                    " to do: let it print on standard error ('puts stderr')"
                )
            elif unable:
                reason = f"{unable[0].strip()}; 'module -t avail' lists those that there are"
            if reason:
                self.wrong(f"environment {name}", "modules", f"{', '.join(loading)}: {reason}")

    def _check_by_job(self, entry: Entry, wait_s: float) -> None:
        """Compare what a short job finds of a partition and its environments with the site."""
        own, extras, before = entry["name"], entry["extras"], len(self.faults)
        place = f"partition {self.system}:{own}"
        trying = {name: self.environments[name] for on, name in self.setups if on == own}
        try:
            looked = look(
                folders.of_site().absolute().parent,
                _access(entry),
                extras["nodes"],
                {
                    name: (self.setups[own, name], [one["extras"]["pmi"]])
                    for name, one in trying.items()
                },
                wait_s,
            )
        except NetproofError as error:
            self.wrong(place, "a job", str(error))
            return
        for key, reason in differing(extras, looked):
            self.wrong(place, key, reason)
        for name, one in looked.environments.items():
            for key, reason in lacking(trying[name], one, extras):
                self.wrong(f"environment {name}", key, f"on {own} {reason}")
        if len(self.faults) == before:
            nodes = fold(node.name for node in looked.nodes)
            self.right.append(f"a job on {nodes} of {own}: {', '.join(trying)} run there")


def _bounds_speed(name: str, limits: Limits) -> bool:
    """Check whether what is slower can be outside."""
    landmark = LANDMARKS.get(name)
    if landmark is not None and landmark.better is Better.LARGER:
        return math.isfinite(limits.low)
    of_time = landmark is None or landmark.better is Better.SMALLER
    return of_time and math.isfinite(limits.high)


def _missing(several: list[tuple[Case, NotThere]]) -> tuple[str, str, str]:
    """Return place, key and reason of one fault for all checks that lack the same keys."""
    error = several[0][1]
    cases, checks = [case for case, _ in several], dict.fromkeys(str(e.keys[0]) for _, e in several)
    key, alongside = error.keys[-1], ", ".join(map(str, error.alongside))
    remedy = f"write {key}: alongside {alongside}" if alongside else f"write {key}:"
    if isinstance(key, str):
        remedy += ", or make one of these an expression that fits it"
    if len(error.keys) == 1:
        key, remedy = "the check", "give it $index and entries as in example.yaml"
    why = f"is not there, so {counted(len(cases), 'case')} on {_places(cases)} would fail; {remedy}"
    return ", ".join(checks), str(key), why


def _places(cases: Iterable[Case]) -> str:
    """Return the partitions of cases with their environments and rank counts."""
    environments: dict[str, dict[str, None]] = defaultdict(dict)
    ranks = set()
    for case in cases:
        environments[case.partition][case.environment] = None
        ranks.add(case.ranks)
    named = "; ".join(f"{name} ({', '.join(several)})" for name, several in environments.items())
    return f"{named} at {', '.join(map(str, sorted(ranks)))} ranks"


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


def _access(entry: Entry) -> list[str]:
    """Return a job's options: it takes whole nodes unless the site says otherwise."""
    access = entry.get("access", [])
    return access if slurm.options_in(access, slurm.SHARING) else [*access, "--exclusive"]


def _refused(entry: Entry, refusal: str) -> str:
    """Return Slurm's refusal of any job of a partition, with the remedy."""
    said, known = refusal.rpartition("--wrap=true: ")[2], associations()
    accounts = dict.fromkeys(account for account, _, _ in known)
    qos = dict.fromkeys(one for *_, several in known for one in several)
    remedies = [remedy for words, remedy in _REMEDIES.items() if words in said]
    remedy = remedies[0] if remedies else "ask whoever runs this Slurm"
    remedy = remedy.format(
        accounts=", ".join(accounts) or "those of sacctmgr",
        qos=", ".join(qos) or "those of sacctmgr",
    )
    return f"is {entry.get('access', [])}, and Slurm refuses such a job: {said}; {remedy}"
