"""A stored session: ReFrame's report, or a session's folder, read strictly."""

from __future__ import annotations

import dataclasses
import json
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from netproof import codec
from netproof.criteria import Finding
from netproof.errors import NO_REPORT, NetproofError
from netproof.intake import disk, trust
from netproof.intake.disk import MalformedError
from netproof.measurement.case import Case
from netproof.session import measured, provenance, records
from netproof.session.measured import Measured
from netproof.session.pair_rounds import PairRounds
from netproof.session.plan import partition_of
from netproof.session.provenance import PartitionNodes, Provenance
from netproof.site.partition import Partition
from netproof.site.slurm import States, unfold

_REPORTS = "run-*.json"

GOOD_RESULTS = ("pass", "xfail")
"""ReFrame's results of a case that is as it should be, or fails as the references expect."""


@dataclass(frozen=True)
class CheckResult:
    """One test case of a session.

    ``case``: None for a job, which is no case of its own; ``measured``: None where the case is not
    complete. ``result`` is ReFrame's: pass, fail, fail_deps, xfail, xpass, skip or abort; a check
    that only criteria failed has passed, since a verdict judges by them again. ``kind``: launches,
    check or pairs, as netproof.run has them. ``skipped``: why a job was skipped, and with it the
    tests that wait for it; ``planned``: whether it is another night's turn. ``references``: the
    run's findings by its references, None where it made none. ``failed_job``: test of the same
    configuration that failed, so that this one did not run; None where it is not known. ``rounds``:
    of a test that read rounds of pairs. ``transport``: what a job's MPI library said, or why
    nothing. ``extras``: its place, ``partition_extras``, and of a case ``environment_extras``
    and ``seed``. ``made_by``: of a job, its provenance, or why it left none;
    ``requeued``: a sentence on each try that Slurm ended and made again, with Slurm's states of its
    nodes when the next began; ``slurm``: what the partitions had at the start.
    """

    name: str
    system: str
    partition: str
    environment: str
    result: str
    phase: str = ""
    reason: str = ""
    seconds: float = 0.0
    nodes: tuple[str, ...] = ()
    folder: str = ""
    case: Case | None = None
    measured: Measured | None = None
    kind: str = "launches"
    skipped: str = ""
    planned: bool = False
    references: tuple[Finding, ...] | None = None
    failed_job: str | None = None
    rounds: PairRounds | None = None
    transport: tuple[str, ...] | str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    made_by: Provenance | str | None = None
    requeued: Mapping[str, States] = field(default_factory=dict)
    slurm: Mapping[str, PartitionNodes] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """Why it did not pass or was skipped, in the words of ReFrame or of the run."""
        if self.result == "skip" and self.skipped:
            return f"was left: {self.skipped}"
        if self.result == "skip":
            return f"was skipped: {self.reason or 'the reason is in what ReFrame printed'}"
        if self.result == "fail_deps":
            return "did not run, since the job that measures for it failed"
        # ReFrame repeats some reasons on lines of their own.
        lines = dict.fromkeys(line.strip() for line in self.reason.splitlines() if line.strip())
        phase = self.phase or "an unknown phase"
        why = " ".join(lines).removeprefix(f"{phase} error: ")
        return f"{self.result} in {phase}: {why.removeprefix('file not found error: [Errno 2] ')}"


_REFRAME_KEYS = {
    *("cmdline", "config_files", "data_version", "hostname", "log_files", "num_aborted"),
    *("num_cases", "num_failures", "num_skipped", "prefix_output", "prefix_stage", "session_uuid"),
    *("time_elapsed", "time_end", "time_end_unix", "time_start", "time_start_unix", "user"),
    *("uuid", "version", "workdir"),
}
"""Keys of ``session_info`` that are ReFrame's own; all others were given as session extras."""


@dataclass(frozen=True)
class Session:
    """A session's report: where it is, what ReFrame says of the session, and its test cases."""

    path: Path
    info: dict[str, Any]
    results: tuple[CheckResult, ...]

    @cached_property
    def provenance(self) -> Provenance:
        """Return where it came from."""
        return provenance.of_results(self.results)

    def insist_on_a_run(self) -> None:
        """Raise NetproofError for the report of a dry run."""
        words = str(self.info.get("cmdline")).split()
        # ReFrame takes any beginning of an option's name.
        if any(len(one) > 3 and "--dry-run".startswith(one) for one in words):
            why = "is of a dry run, which measures nothing: name that of a run"
            raise NetproofError(f"{self.path}: {why}")

    @property
    def with_pairs(self) -> tuple[CheckResult, ...]:
        """Its tests that read rounds of pairs."""
        return tuple(result for result in self.results if result.rounds is not None)

    @property
    def began(self) -> float:
        """When it began, in seconds since the epoch; 0 where its report does not say it."""
        began = self.info.get("time_start_unix")
        return float(began) if isinstance(began, int | float) else 0.0

    @property
    def ahead(self) -> str:
        """Sentence that it began in the future by this machine's clock; empty where not."""
        return dated_ahead(self.path, self.began)

    def system(self, remedy: str = "a session is of one") -> str:
        """Return its only system; NetproofError, with the remedy, for several, or for none."""
        systems = sorted({result.system for result in self.results})
        if not systems:
            raise NetproofError(
                f"{self.path}: holds no test case, so nothing ran; a verdict takes what was to run:"
                " SYSTEM[:PARTITION]"
            )
        if len(systems) > 1:
            named = ", ".join(systems)
            raise NetproofError(
                f"{self.path}: holds results of {len(systems)} systems ({named}); {remedy}"
            )
        return systems[0]

    def labels(self) -> dict[str, str]:
        """Return what ``reframe --session-extras`` gave."""
        given = {key: one for key, one in self.info.items() if key not in _REFRAME_KEYS}
        return {key: one if isinstance(one, str) else json.dumps(one) for key, one in given.items()}


def label_of(stated: str) -> tuple[str, str]:
    """Key and value of ``KEY=VALUE``; NetproofError for another form."""
    key, equals, value = stated.partition("=")
    if not (key and equals):
        raise NetproofError(f"{stated!r} is no label: KEY=VALUE, kernel=6.1 for instance")
    return key, value


def reports(folder: Path) -> list[Path]:
    """Paths of the reports in ``folder``, the newest first; what is no file is ``left_out``."""
    return [path for path, _ in sorted(_dated(folder), key=lambda one: one[1], reverse=True)]


def left_out(folder: Path) -> list[str]:
    """Return a sentence for each file of ``folder`` with a report's name that cannot be one."""
    found = {path for path, _ in _dated(folder)}
    return [
        f"{path}: is a link to nothing" if path.is_symlink() else f"{path}: is no file"
        for path in sorted(folder.glob(_REPORTS))
        if path not in found
    ]


def _dated(folder: Path) -> Iterator[tuple[Path, float]]:
    """The reports in ``folder``, and when each was written."""
    for path in folder.glob(_REPORTS):
        with suppress(OSError):
            found = path.stat()
            if stat.S_ISREG(found.st_mode):
                yield path, found.st_mtime


AHEAD_S = 24 * 3600
"""Seconds by which clocks of machines may differ."""


def dated_ahead(path: Path, began: float) -> str:
    """Return the sentence that a session at a path began in the future; empty where not."""
    if not began > time.time() + AHEAD_S:
        return ""
    return (
        f"{path} is of {datetime.fromtimestamp(min(began, _LAST_S), UTC):%Y-%m-%d}, and this"
        f" machine's clock says {datetime.now(UTC):%Y-%m-%d}: it counts as the newest from now on;"
        " set the clock, or remove that session"
    )


_LAST_S = 253402300799
"""The last second of the year 9999."""


def newest(folder: Path, system: str | None = None) -> Path:
    """Path of the newest session in ``folder``; NetproofError without one, named as asked for.

    It is a report, or the folder of a session that began after the newest report was written: that
    one goes on, or was ended before ReFrame wrote its report.
    """
    found = reports(folder)
    begun = max(folder.glob(records.FOLDERS), key=lambda path: path.name, default=None)
    if begun is not None and (not found or _began(begun) > found[0].stat().st_mtime):
        return begun
    if not found:
        raise NetproofError(
            f"{f'{system} is no file here, and ' if system else ''}in {folder} there is no report"
            f" of a session; name one, or run 'netproof run{f' {system}' if system else ''}'"
        )
    return found[0]


def _began(folder: Path) -> float:
    with suppress(OSError):
        return (folder / records.HEADER).stat().st_mtime
    return 0.0


def load(path: Path) -> Session:
    """Read a report or a session's folder; NetproofError if damaged or everybody's to write."""
    path = place_of(path)
    return of_document(path, _document(path))


def of_document(path: Path, document: dict[str, Any]) -> Session:
    """Return the session of a ``document_of`` a path, from which it takes what was measured.

    Raise NetproofError for anything else.
    """
    results: list[CheckResult] = []
    counted = 0
    for run in document["runs"]:
        counted += codec.decode(int, run.get("num_cases"), f"{path}: a run: num_cases")
        made = []
        for test in run["testcases"]:
            place = f"{path}: {test.get('display_name', 'a test')}"
            try:
                made.append(_result(test, place))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise NetproofError(f"{place}: cannot be read: {error!r}") from None
            # Of one case at a time, plain values and the records made of them are there.
            for key in _BULKY & test.keys():
                del test[key]
        results += _waiting(run["testcases"], made)
    if len(results) != counted:
        raise NetproofError(
            f"{path}: reports {len(results)} test cases, and its header counts others"
        )
    return Session(path, document["session_info"], tuple(results))


def document_of(path: Path) -> dict[str, Any]:
    """Return a report with the records that it refers to, checked.

    ``path``: the report, or the session's folder without one. Raise NetproofError where it
    is no whole report of ReFrame's, a record is damaged, or everybody can write them.
    """
    return _document(place_of(path))


def _document(path: Path) -> dict[str, Any]:
    trust.insist(path, "the report", data=True)
    if path.name == records.HEADER:
        return records.document_of(path.parent)
    try:
        document: dict[str, Any] = disk.json_file(path)
    except FileNotFoundError as error:
        raise NetproofError(f"{path}: {NO_REPORT}") from error
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error
    except MalformedError as error:
        raise NetproofError(
            f"{path}: is no whole report, it may be cut short: line {error.line}: {error.reason}"
        ) from error
    place = f"{path}: is no report of ReFrame's"
    codec.decode(dict[str, Any], document, place)
    codec.decode(dict[str, Any], document.get("session_info"), f"{place}: session_info")
    for run in codec.decode(list[dict[str, Any]], document.get("runs"), f"{place}: runs"):
        codec.decode(list[dict[str, Any]], run.get("testcases"), f"{place}: testcases")
    try:
        records.resolve(document, path)
        return records.completed(document, path)
    except NetproofError as error:
        raise NetproofError(f"{path}: {error}") from None


def place_of(path: Path) -> Path:
    """Return the file that stands for a session: its report, or the header of its folder."""
    folder = path.parent if path.name == records.HEADER else path
    return (_report_of(folder) or folder / records.HEADER) if folder.is_dir() else path


def _report_of(folder: Path) -> Path | None:
    """The report that refers to the records of a session's folder; None where none does."""
    for path in reports(folder.parent):
        with suppress(NetproofError, OSError, KeyError, TypeError):
            runs = disk.json_file(path)["runs"]
            tests = [test for run in runs for test in run["testcases"] if test.get(records.KEY)]
            if any(test[records.KEY]["path"].startswith(f"{folder.name}/") for test in tests):
                return path
    return None


_BULKY = {records.MEASURED, records.PAIRS}
"""Keys that a document loses once its results are made: most of its memory."""

_REPORTED = {
    **{name: name for name in ("system", "partition", "result")},
    **{"name": "display_name", "environment": "environ", "seconds": "time_total"},
    **{"phase": "fail_phase", "reason": "fail_reason", "kind": "netproof_kind"},
    **{name: f"netproof_{name}" for name in ("transport", "references", "slurm")},
}
"""Keys of ReFrame's test cases by the fields of a result, where its values are those."""

_LEFT = {"skipped": "why", "planned": "planned"}
"""Keys of ``netproof_left`` by the fields of a result."""

_BY_CRITERIA = ("fail", "performance")
"""Result and phase of a check that met its references and that criteria failed."""

_MEASURED_KEYS = {"format", *(one.name for one in fields(Measured))}
"""Keys of what was measured that are not of its place."""


def _result(test: Mapping[str, Any], place: str) -> CheckResult:
    """Return a test's result; NetproofError, with its place, for another form."""
    found = {name: test[key] for name, key in _REPORTED.items() if test.get(key) is not None}
    # ReFrame reports a variable that was not set as it was declared, empty.
    plain = {key: one for key, one in found.items() if one or not _REPORTED[key].startswith("net")}
    case, values, rounds = (
        codec.decode(dict[str, Any], test.get(key) or {}, f"{place}: {key}")
        for key in ("netproof_case", records.MEASURED, records.PAIRS)
    )
    if case:
        plain.setdefault("kind", "check")
        # Ranks per node are the partition's, known where the test came that far.
        described = codec.decode(dict[str, Any], values.get("case", {}), place)
        where = {name: plain[name] for name in ("system", "partition", "environment")}
        where["ranks_per_node"] = described.get("ranks_per_node", 0)
        plain["case"] = codec.decode(Case, {**case, **where}, place)
        if values:
            plain["extras"] = {key: values[key] for key in values.keys() - _MEASURED_KEYS}
            try:
                plain["measured"] = measured.of_record(plain["case"], values)
            except NetproofError as error:
                raise NetproofError(f"{place}: {error}") from None
    elif values:
        lacks = f"has {records.MEASURED}, and no netproof_case"
        raise NetproofError(f"{place}: {lacks}: the report was changed, so measure again")
    if rounds:
        plain["rounds"] = {key: one for key, one in rounds.items() if key != "partition_extras"}
        plain["extras"] = {"partition_extras": rounds["partition_extras"]}
    if provenance.KEY in test:
        plain["made_by"] = provenance.of_test(test, place)
    if tries := test.get("netproof_requeued"):
        tries = codec.decode(list[dict[str, str]], tries, f"{place}: netproof_requeued")
        job = f"{test['display_name']} (job {test['jobid']})"
        plain["requeued"] = provenance.requeues(job, tries)
    if test.get("netproof_left") and test.get("result") == "skip":
        left = codec.decode(dict[str, str | bool], test["netproof_left"], f"{place}: netproof_left")
        plain |= {name: left.pop(key, None) for name, key in _LEFT.items()} | left
    if test.get("netproof_met") and (plain["result"], plain.get("phase")) == _BY_CRITERIA:
        plain |= {"result": "pass", "phase": "", "reason": ""}
    listed = test.get("job_nodelist") or ()
    if isinstance(listed, str):  # ReFrame's --performance-report folds the list in its report.
        listed = unfold(listed)
    # A job's own word counts, for ReFrame may ask sacct too early.
    made_by = plain.get("made_by")
    own = [one.node for one in made_by.nodes] if isinstance(made_by, Provenance) else ()
    plain["nodes"] = tuple(dict.fromkeys(own)) or tuple(listed)
    plain["folder"] = test.get("outputdir" if test.get("result") == "pass" else "stagedir") or ""
    return codec.decode(CheckResult, plain, place)


def _waiting(
    tests: Sequence[Mapping[str, Any]], results: Sequence[CheckResult]
) -> Iterator[CheckResult]:
    """Yield a run's results; those that did not run with what they waited for."""
    skipped, failed = {}, {}
    for test, one in zip(tests, results, strict=True):
        key = test.get("unique_name") or "", f"{one.system}:{one.partition}", one.environment
        if one.skipped:
            skipped[key] = one
        elif one.result == "fail" and key[0]:
            failed[key] = one.name
    for test, one in zip(tests, results, strict=True):
        waited_for = map(tuple, test.get("dependencies_actual") or ())
        if one.result not in ("fail_deps", "skip") or one.skipped:
            yield one
            continue
        several = [*waited_for]
        why = next((skipped[key] for key in several if key in skipped), None)
        job = next((failed[key] for key in several if key in failed), None)
        if why and one.result == "skip":
            yield dataclasses.replace(one, skipped=why.skipped, planned=why.planned)
        elif job:
            # ReFrame skips what waits for a test that itself waited for the failed one.
            yield dataclasses.replace(one, result="fail_deps", failed_job=job)
        else:
            yield one


def folder_of(reports: Path, label: str) -> Path:
    """Return the folder of sessions that are no acceptance, among the reports or itself.

    No verdict, store or history looks into it.
    """
    return reports if reports.name == label else reports / label


class JobRecord:
    """Base of the results of a job, in a test's record under ``KEY``; ``CALLED``: in errors."""

    KEY: ClassVar[str]
    CALLED: ClassVar[str]

    partition_extras: Mapping[str, Any]

    @property
    def where(self) -> Partition:
        """Return the partition as checks see it."""
        return partition_of(self.partition_extras, f"a {self.CALLED}")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the record of its plain values; NetproofError for any others."""
        made = codec.decode(cls, values, f"a {cls.CALLED} cannot be read")
        partition_of(made.partition_extras, f"a {cls.CALLED} cannot be read")
        return made

    @classmethod
    def of_report(cls, path: Path) -> list[Self]:
        """Return all such results in a report; NetproofError where there is none."""
        found, reasons = [], []
        for run in document_of(path)["runs"]:
            for test in run["testcases"]:
                values = test.get(cls.KEY)
                if values:
                    try:
                        found.append(cls.from_json(values))
                    except NetproofError as error:
                        raise NetproofError(f"{path}: {test['display_name']}: {error}") from None
                elif test["result"] != "pass" and test.get("fail_reason"):
                    reasons.append(f"{test['display_name']}: {test['fail_reason']}")
        if not found:
            why = f": {'; '.join(reasons)}" if reasons else ""
            raise NetproofError(f"{path}: has no {cls.CALLED} that is whole{why}")
        return found


@dataclass(frozen=True)
class MeasuredJob(JobRecord):
    """Results of a job: where it ran, and as which job."""

    system: str
    partition: str
    environment: str
    jobid: str
    nodes: tuple[str, ...]
    partition_extras: Mapping[str, Any]
