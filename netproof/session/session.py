"""A stored session: ReFrame's report, or a session's folder, read strictly."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.criteria import Finding
from netproof.errors import NO_REPORT, NetproofError
from netproof.intake import json_reading, trust
from netproof.intake.json_reading import NoJsonError
from netproof.measurement.case import Case
from netproof.session import measured, records
from netproof.session.left import SkipReason
from netproof.session.measured import Measured
from netproof.session.pair_rounds import PairRounds
from netproof.session.transport import ReportedTransport
from netproof.site.slurm import unfold

_REPORTS = "run-*.json"

GOOD_RESULTS = ("pass", "xfail")
"""ReFrame's results of a case that is as it should be, or fails as the references expect."""


@dataclass(frozen=True)
class CheckResult:
    """One test case of a session.

    ``case``: None for a job, which is no case of its own; ``measured``: None where the case is not
    complete. ``result`` is ReFrame's: pass, fail, fail_deps, xfail, xpass, skip or abort. ``kind``:
    launches, check, curves or configurations, as netproof.run has them. ``skipped``: why a job was
    skipped, and with it the tests that wait for it. ``references``: the run's findings by its
    references, None where it made none. ``failed_job``: test of the same configuration that failed,
    so that this one did not run; None where it is not known. ``rounds``: of a test that read rounds
    of pairs. ``transport``: of a job whose MPI library was asked. ``extras``: where it measured:
    ``partition_extras``, and of a case ``environment_extras``, ``jobid`` and ``seed``.
    """

    name: str
    system: str
    partition: str
    environment: str
    result: str
    phase: str
    reason: str
    seconds: float
    nodes: tuple[str, ...]
    folder: str
    case: Case | None
    measured: Measured | None
    kind: str = "launches"
    skipped: SkipReason | None = None
    references: tuple[Finding, ...] | None = None
    failed_job: str | None = None
    rounds: PairRounds | None = None
    transport: ReportedTransport | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


_REFRAME_KEYS = {
    *("cmdline", "config_files", "data_version", "hostname", "log_files", "num_aborted"),
    *("num_cases", "num_failures", "num_skipped", "prefix_output", "prefix_stage", "session_uuid"),
    *("time_elapsed", "time_end", "time_end_unix", "time_start", "time_start_unix", "user"),
    *("uuid", "version", "workdir"),
}
"""Keys of ``session_info`` that are ReFrame's own; all others were given as session extras."""


@dataclass(frozen=True)
class _Test:
    """Test case of ReFrame's report, with netproof's own keys if it has them."""

    display_name: str
    system: str
    partition: str
    environ: str
    result: str
    fail_phase: str | None = None
    fail_reason: str | None = None
    outputdir: str | None = None
    stagedir: str | None = None
    time_total: float | None = None
    job_nodelist: str | tuple[str, ...] | None = None
    unique_name: str | None = None
    dependencies_actual: tuple[tuple[str, ...], ...] = ()
    netproof_kind: str | None = None
    netproof_case: dict[str, Any] | None = None
    netproof_measured: dict[str, Any] | None = None
    netproof_left: SkipReason | None = None
    netproof_transport: ReportedTransport | None = None
    netproof_references: tuple[Finding, ...] = ()
    netproof_pairs: dict[str, Any] | None = None
    netproof_provenance: dict[str, Any] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Name, partition with its system, and environment, as dependencies name a test."""
        return (self.unique_name or "", f"{self.system}:{self.partition}", self.environ)


@dataclass(frozen=True)
class Session:
    """A session's report: where it is, what ReFrame says of the session, and its test cases.

    ``document``: as ``document_of`` read it, less what ``results`` have; None of a stored session.
    """

    path: Path
    info: dict[str, Any]
    results: tuple[CheckResult, ...]
    document: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def with_pairs(self) -> tuple[CheckResult, ...]:
        """Its tests that read rounds of pairs."""
        return tuple(result for result in self.results if result.rounds is not None)

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


def newest(folder: Path) -> Path:
    """Path of the newest session in ``folder``; NetproofError without one.

    It is a report, or the folder of a session that began after the newest report was written: that
    one goes on, or was ended before ReFrame wrote its report.
    """
    found = reports(folder)
    begun = max(folder.glob(records.FOLDERS), key=lambda path: path.name, default=None)
    if begun is not None and (not found or _began(begun) > found[0].stat().st_mtime):
        return begun
    if not found:
        raise NetproofError(
            f"{folder}: there is no report of a session; name one, or run 'netproof run'"
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
    try:
        results: list[CheckResult] = []
        counted = 0
        for tests, run in zip(_tests(document), document["runs"], strict=True):
            left = {t.key: t.netproof_left for t in tests if t.netproof_left and t.result == "skip"}
            failed = {t.key: t.display_name for t in tests if t.result == "fail" and t.unique_name}
            counted += codec.decode(int, run.get("num_cases"), "a run: num_cases")
            tests.reverse()
            for values in run["testcases"]:
                # Of one case at a time, plain values and the records made of them are there.
                test = tests.pop()
                try:
                    results.append(_result(test, left, failed))
                except NetproofError as error:
                    raise NetproofError(f"{test.display_name}: {error}") from None
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise NetproofError(f"{test.display_name}: cannot be read: {error!r}") from None
                for key in _BULKY & values.keys():
                    del values[key]
    except NetproofError as error:
        raise NetproofError(f"{path}: {error}") from error
    if len(results) != counted:
        raise NetproofError(
            f"{path}: reports {len(results)} test cases, and its header counts others"
        )
    return Session(path, document["session_info"], tuple(results), document)


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
        document: dict[str, Any] = json_reading.json_file(path)
    except FileNotFoundError as error:
        raise NetproofError(f"{path}: {NO_REPORT}") from error
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error
    except NoJsonError as error:
        raise NetproofError(
            f"{path}: is no whole report, it may be cut short: line {error.line}: {error.reason}"
        ) from error
    place = f"{path}: is no report of ReFrame's"
    codec.decode(dict[str, Any], document, place)
    codec.decode(dict[str, Any], document.get("session_info"), f"{place}: session_info")
    try:
        _tests(document)
        records.resolve(document, path)
    except NetproofError as error:
        raise NetproofError(f"{path}: {error}") from None
    return document


def _tests(document: Mapping[str, Any]) -> list[list[_Test]]:
    """Return the tests of each run of a report."""
    runs = codec.decode(
        list[dict[str, Any]], document.get("runs"), "is no report of ReFrame's: runs"
    )
    tests = [codec.decode(list[dict[str, Any]], one.get("testcases"), "testcases") for one in runs]
    return [[_test(one) for one in several] for several in tests]


_BULKY = {records.MEASURED, records.PAIRS}
"""Keys that a document loses once its results are made: most of its memory."""

_OWN_KEYS = {one.name for one in fields(_Test) if one.name.startswith("netproof_")}


def _test(values: Mapping[str, Any]) -> _Test:
    # ReFrame reports a variable that was not set as it was declared, empty.
    there = {key: one for key, one in values.items() if one or key not in _OWN_KEYS}
    return codec.decode_part(_Test, there, str(values.get("display_name", "a test")))


def place_of(path: Path) -> Path:
    """Return the file that stands for a session: its report, or the header of its folder."""
    folder = path.parent if path.name == records.HEADER else path
    return (_report_of(folder) or folder / records.HEADER) if folder.is_dir() else path


def _report_of(folder: Path) -> Path | None:
    """The report that refers to the records of a session's folder; None where none does."""
    for path in reports(folder.parent):
        with suppress(NetproofError, OSError, KeyError, TypeError):
            runs = json_reading.json_file(path)["runs"]
            tests = [test for run in runs for test in run["testcases"] if test.get(records.KEY)]
            if any(test[records.KEY]["path"].startswith(f"{folder.name}/") for test in tests):
                return path
    return None


def _nodes(test: _Test) -> tuple[str, ...]:
    """Return a job's nodes by its own word, else ReFrame's, who may ask sacct too early."""
    own = [node["node"] for node in (test.netproof_provenance or {}).get("nodes", ())]
    listed = test.job_nodelist or ()
    if isinstance(listed, str):  # ReFrame's --performance-report folds the list in its report.
        listed = unfold(listed)
    return tuple(dict.fromkeys(own)) or tuple(listed)


def _result(
    test: _Test,
    left: Mapping[tuple[str, ...], SkipReason],
    failed: Mapping[tuple[str, ...], str],
) -> CheckResult:
    """Return a test's result.

    ``left``: why jobs were skipped, ``failed``: names of jobs that failed, both by the test's key.
    """
    values, name = test.netproof_measured, test.display_name
    case, found, rounds, extras = None, None, None, {}
    if test.netproof_case is not None:
        # Ranks a node are the partition's, known where the test came that far.
        described = codec.decode(dict[str, Any], (values or {}).get("case", {}), name)
        where = {"system": test.system, "partition": test.partition, "environment": test.environ}
        where["ranks_per_node"] = described.get("ranks_per_node", 0)
        case = codec.decode(Case, {**test.netproof_case, **where}, name)
    if values is not None and case is not None:
        extras = {key: one for key, one in values.items() if key not in _MEASURED_KEYS}
        found = measured.of_record(case, values)
    if test.netproof_pairs is not None:
        rounds = PairRounds.from_json(test.netproof_pairs)
        extras = {"partition_extras": test.netproof_pairs["partition_extras"]}
    waited_for = [test.key, *test.dependencies_actual]
    skipped, failed_jobs, result = [], [], test.result
    if left and result == "skip":
        skipped = [left[key] for key in waited_for if key in left]
    if failed and result in ("fail_deps", "skip") and not skipped:
        failed_jobs = [failed[key] for key in waited_for[1:] if key in failed]
        if failed_jobs:
            # ReFrame skips what waits for a test that itself waited for the failed one.
            result = "fail_deps"
    return CheckResult(
        name=name,
        system=test.system,
        partition=test.partition,
        environment=test.environ,
        result=result,
        phase=test.fail_phase or "",
        reason=test.fail_reason or "",
        seconds=test.time_total or 0.0,
        nodes=_nodes(test),
        folder=(test.outputdir if test.result == "pass" else test.stagedir) or "",
        case=case,
        measured=found,
        kind=test.netproof_kind or ("check" if case else "launches"),
        skipped=skipped[0] if skipped else None,
        references=test.netproof_references or None,
        failed_job=failed_jobs[0] if failed_jobs else None,
        rounds=rounds,
        transport=test.netproof_transport,
        extras=extras,
    )


_MEASURED_KEYS = {"format", *(one.name for one in fields(Measured))}
