"""A stored session: ReFrame's own report, read strictly."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError
from netproof.intake import json_reading, trust
from netproof.intake.json_reading import NoJsonError
from netproof.intake.shapes import (
    MAPPING,
    NUMBER,
    TEXT,
    WHOLE,
    Each,
    Keys,
    OrEmpty,
    OrNone,
    OrText,
    insist,
)
from netproof.measurement.case import Case
from netproof.session import pair_rounds, records, reference_findings, transport
from netproof.session.left import Left
from netproof.session.measured import extended
from netproof.session.measured_shapes import AGAIN_SHAPE, CASE_SHAPE, CRASH_SHAPE, LAUNCH_SHAPE
from netproof.session.measured_shapes import SHAPE as MEASURED_SHAPE
from netproof.session.measured_whole import insist_on_whole
from netproof.site.hostlist import unfold

PAIRS_KEY = "netproof_pairs"
"""The key under which a test of the report has its rounds of pairs."""

MEASURED_FORMAT = 3
"""Format of what a check stores of a case in the report; raised when its keys change."""

_REPORTS = "run-*.json"

GOOD_RESULTS = ("pass", "xfail")
"""ReFrame's results of a case that is as it should be, or fails as the references expect."""


@dataclass(frozen=True)
class CheckResult:
    """One test case of a session.

    ``case`` None for a job, which is no case of its own; ``measured`` None where the case was
    not complete, else the plain values of ``measured.Measured``. ``result`` is ReFrame's:
    pass, fail, fail_deps, xfail, xpass, skip or abort. ``kind``: launches, check, curves or
    configurations, as netproof.run.rfm has them. ``again``: the plain values of
    ``again.MeasuredAgain`` for each case that curves had flagged, None where the test does not
    measure again or came not that far. ``left``: the plain values of ``left.Left``, why a job was
    skipped, and with it the tests that wait for it; None where nothing was left. ``failed_job``:
    name of the test of the same configuration that failed, so that this one did not run
    (fail_deps); None where the report does not tell. ``contradiction``: in what the parts of what
    was measured contradict each other, so that it was not, and ``measured`` is None; None where
    they do not. ``pairs``: the plain values of ``pair_rounds.PairRounds``
    with the partition's extras, None of a test that read no rounds of pairs. ``transport``: of a
    job, the plain values of ``transport.of_job``, what its MPI library says of its transport; None
    where it was not asked.
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
    measured: dict[str, Any] | None
    kind: str = "launches"
    again: tuple[dict[str, Any], ...] | None = None
    left: dict[str, Any] | None = None
    references: tuple[dict[str, Any], ...] | None = None
    failed_job: str | None = None
    contradiction: str | None = None
    pairs: dict[str, Any] | None = None
    transport: dict[str, Any] | None = None


_REFRAME_KEYS = {
    *("cmdline", "config_files", "data_version", "hostname", "log_files", "num_aborted"),
    *("num_cases", "num_failures", "num_skipped", "prefix_output", "prefix_stage", "session_uuid"),
    *("time_elapsed", "time_end", "time_end_unix", "time_start", "time_start_unix", "user"),
    *("uuid", "version", "workdir"),
}
"""Keys of ``session_info`` that are ReFrame's own; all others were given as session extras."""


_TEXTS = Each(TEXT)
_OF_FORMAT = {"format": WHOLE}
_TEST = Keys(
    {
        **dict.fromkeys(("display_name", "system", "partition", "environ", "result"), TEXT),
        **dict.fromkeys(("fail_phase", "fail_reason", "outputdir", "stagedir"), OrNone(TEXT)),
        "time_total": OrNone(NUMBER),
        "job_nodelist": OrText(_TEXTS),
    },
    {
        "unique_name": TEXT,
        "dependencies_actual": Each(_TEXTS),
        "netproof_kind": OrNone(TEXT),
        "netproof_case": OrEmpty(
            Keys(
                dict.fromkeys(("benchmark", "function", "path", "direction"), TEXT)
                | {"ranks": WHOLE}
            )
        ),
        "netproof_measured": OrEmpty(Keys(_OF_FORMAT | {"case": Keys({"ranks_per_node": WHOLE})})),
        "netproof_again": OrEmpty(Keys(_OF_FORMAT | {"cases": Each(MAPPING)})),
        "netproof_further": OrEmpty(Keys(_OF_FORMAT | {"cases": Each(MAPPING)})),
        "netproof_transport": OrEmpty(transport.SHAPE),
        "netproof_references": OrNone(Each(reference_findings.SHAPE)),
        "netproof_pairs": OrEmpty(Keys({**pair_rounds.SHAPE.needed, "partition_extras": MAPPING})),
    },
)
_FURTHER = Keys(
    {"case": CASE_SHAPE, "launches": Each(LAUNCH_SHAPE), "crashes": Each(CRASH_SHAPE)},
    {"faults": _TEXTS},
)
_ALL_FURTHER, _ALL_AGAIN = Each(_FURTHER), Each(AGAIN_SHAPE)
_MEASURED = MEASURED_SHAPE.any_of()
"""What is missing is for those to tell who need it."""
_SHAPE = Keys(
    {
        "session_info": MAPPING,
        "runs": Each(Keys({"num_cases": WHOLE, "testcases": Each(_TEST)})),
    }
)
"""Of what kind each value of a report is that is read here."""


@dataclass(frozen=True)
class Session:
    """A session's report: where it is, what ReFrame says of the session, and its test cases.

    ``document``: as ``document_of`` read it, None of a stored session.
    """

    path: Path
    info: dict[str, Any]
    results: tuple[CheckResult, ...]
    document: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def with_pairs(self) -> tuple[CheckResult, ...]:
        """Its tests that read rounds of pairs."""
        return tuple(result for result in self.results if result.pairs is not None)

    def labels(self) -> dict[str, str]:
        """What the session was told of itself, by ``reframe --session-extras``."""
        return {key: _word(value) for key, value in self.info.items() if key not in _REFRAME_KEYS}


def reports(folder: Path) -> list[Path]:
    """Paths of the reports in ``folder``, the newest first; what is no file is ``left_out``."""
    return [path for path, _ in sorted(_dated(folder), key=lambda one: one[1], reverse=True)]


def left_out(folder: Path) -> list[str]:
    """What in ``folder`` has a report's name and cannot be one, a sentence each."""
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
    """Path of the newest session in ``folder``; NetproofError where there is none.

    It is a report, or the folder of a session that began after the newest report was written: that
    one goes on, or was ended before ReFrame wrote its report.
    """
    found = reports(folder)
    begun = max(folder.glob(records.FOLDERS), key=lambda path: path.name, default=None)
    if begun is not None and (not found or _began(begun) > found[0].stat().st_mtime):
        return begun
    if not found:
        raise NetproofError(
            f"{folder}: there is no report of a session; name one, or run 'reframe -c checks -r'"
        )
    return found[0]


def _began(folder: Path) -> float:
    with suppress(OSError):
        return (folder / records.HEADER).stat().st_mtime
    return 0.0


def load(path: Path) -> Session:
    """Read a report, or a session's folder.

    Raises NetproofError where it is no whole report of ReFrame's, or lies where all can write.
    """
    path = place_of(path)
    return of_document(path, document_of(path))


def of_document(path: Path, document: dict[str, Any]) -> Session:
    """Return the session of a ``document_of`` a path; NetproofError where it is none."""
    try:
        info = document["session_info"]
        results = [
            _result(test, notes)
            for run in document["runs"]
            for notes in [_Notes.of(run["testcases"])]
            for test in run["testcases"]
        ]
    except NetproofError as error:
        raise NetproofError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NetproofError(f"{path}: is no report of ReFrame's: {error!r}") from error
    if len(results) != sum(run["num_cases"] for run in document["runs"]):
        raise NetproofError(
            f"{path}: reports {len(results)} test cases, and its header counts others"
        )
    return Session(path, info, tuple(results), document)


def document_of(path: Path) -> dict[str, Any]:
    """What a report holds with the records that it refers to, each value of its kind.

    ``path``: the report, or the session's folder where there is none. Raises NetproofError where it
    is no whole report of ReFrame's, a record is damaged, or they lie where all can write.
    """
    path = place_of(path)
    trust.insist(path, "the report", data=True)
    if path.name == records.HEADER:
        document = records.document_of(path.parent)
        insist(document, _SHAPE, f"{path}: is no session's folder")
        return document
    try:
        document = json_reading.json_file(path)
    except FileNotFoundError as error:
        raise NetproofError(
            f"{path}: is not there; ReFrame leaves no report where no test ran, and prints why"
        ) from error
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error
    except NoJsonError as error:
        raise NetproofError(
            f"{path}: is no whole report, it may be cut short: line {error.line}: {error.reason}"
        ) from error
    insist(document, _SHAPE, f"{path}: is no report of ReFrame's")
    try:
        records.resolve(document, path)
    except NetproofError as error:
        raise NetproofError(f"{path}: {error}") from None
    insist(document, _SHAPE, f"{path}: the records that it refers to")
    return document


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


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _left(tests: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Why a job was left, by name, partition with its system, and environment."""
    return {
        _name_and_place(test): Left.from_json(test["netproof_left"]).as_json()
        for test in tests
        if test.get("netproof_left") and test["result"] == "skip"
    }


def _failed(tests: list[dict[str, Any]]) -> dict[tuple[str, ...], str]:
    """The tests that failed themselves, and how they are called."""
    return {
        _name_and_place(test): test["display_name"]
        for test in tests
        if test["result"] == "fail" and "unique_name" in test
    }


def _name_and_place(test: dict[str, Any]) -> tuple[str, ...]:
    return (test["unique_name"], f"{test['system']}:{test['partition']}", test["environ"])


def _nodes(test: dict[str, Any]) -> tuple[str, ...]:
    """Nodes of a test's job: by the job's own word where it left one, else ReFrame's list.

    ReFrame asks sacct, now and then before that knows all of them.
    """
    described = (test.get("netproof_provenance") or {}).get("nodes", ())
    again = (test.get("netproof_again") or {}).get("cases", ())
    own = [node["node"] for node in described] or [name for one in again for name in one["nodes"]]
    listed = test["job_nodelist"] or ()
    if isinstance(listed, str):  # ReFrame's --performance-report folds the list in its report.
        listed = unfold(listed)
    return tuple(dict.fromkeys(own)) or tuple(listed)


def _further(
    tests: list[dict[str, Any]],
) -> dict[tuple[Any, ...], tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Launches and crashes of cases that other tests of a run had measured, by the case's key."""
    found: dict[tuple[Any, ...], tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for test in tests:
        document = test.get("netproof_further")
        if not document:
            continue
        _insist_on_format(test, document)
        place = f"{test['display_name']}: what was launched further"
        insist(document["cases"], _ALL_FURTHER, place)
        for values in document["cases"]:
            launches, crashes = found.setdefault(Case(**values["case"]).key(), ([], []))
            launches += values["launches"]
            crashes += values["crashes"]
    return found


def _insist_on_format(test: dict[str, Any], document: dict[str, Any]) -> None:
    if document["format"] != MEASURED_FORMAT:
        raise NetproofError(
            f"{test['display_name']}: what was measured is of format {document['format']}, and"
            f" this netproof reads {MEASURED_FORMAT}"
        )


@dataclass(frozen=True)
class _Notes:
    """What some tests of a run say of others.

    ``left``: why a job was left, ``failed``: jobs that failed, both by name, partition with its
    system, and environment; ``further``: launches and crashes of cases that other tests had
    measured, by the case's key.
    """

    left: dict[tuple[str, ...], dict[str, Any]]
    failed: dict[tuple[str, ...], str]
    further: dict[tuple[Any, ...], tuple[list[dict[str, Any]], list[dict[str, Any]]]]

    @classmethod
    def of(cls, tests: list[dict[str, Any]]) -> _Notes:
        return cls(_left(tests), _failed(tests), _further(tests))


def _result(
    test: dict[str, Any],
    notes: _Notes,
) -> CheckResult:
    described = test.get("netproof_case") or None
    measured = test.get("netproof_measured") or None
    again = test.get("netproof_again") or None
    for document in (measured, again):
        if document:
            _insist_on_format(test, document)
    name = test["display_name"]
    if measured:
        insist(measured, _MEASURED, f"{name}: what was measured")
    if again:
        insist(again["cases"], _ALL_AGAIN, f"{name}: what was measured again")
    case = None
    if described:
        # Ranks a node are the partition's, known where the test came that far.
        ranks_per_node = measured["case"]["ranks_per_node"] if measured else 0
        case = Case(
            test["system"],
            test["partition"],
            test["environ"],
            ranks_per_node=ranks_per_node,
            **described,
        )
    contradiction = None
    if measured and case is not None:
        try:
            insist_on_whole(case, measured)
            if case.key() in notes.further:
                measured = extended(measured, *notes.further[case.key()])
        except NetproofError as error:
            contradiction, measured = str(error), None
    reasons: list[dict[str, Any]] = []
    if notes.left and test["result"] == "skip":
        waited_for = [_name_and_place(test), *map(tuple, test["dependencies_actual"])]
        reasons = [notes.left[name] for name in waited_for if name in notes.left]
    failed_jobs = []
    result = test["result"]
    if notes.failed and result in ("fail_deps", "skip") and not reasons:
        waited_for = [*map(tuple, test.get("dependencies_actual") or ())]
        failed_jobs = [notes.failed[name] for name in waited_for if name in notes.failed]
        if failed_jobs:
            # ReFrame skips what waits for a test that itself waited for the failed one.
            result = "fail_deps"
    return CheckResult(
        name=test["display_name"],
        system=test["system"],
        partition=test["partition"],
        environment=test["environ"],
        result=result,
        phase=test["fail_phase"] or "",
        reason=test["fail_reason"] or "",
        seconds=test["time_total"] or 0.0,
        nodes=_nodes(test),
        folder=test["outputdir"] if test["result"] == "pass" else test["stagedir"],
        case=case,
        measured=measured,
        kind=test.get("netproof_kind") or ("check" if described else "launches"),
        again=tuple(again["cases"]) if again else None,
        left=reasons[0] if reasons else None,
        references=tuple(test.get("netproof_references") or ()) or None,
        failed_job=failed_jobs[0] if failed_jobs else None,
        contradiction=contradiction,
        pairs=_pairs(test),
        transport=test.get("netproof_transport") or None,
    )


def _pairs(test: dict[str, Any]) -> dict[str, Any] | None:
    """The rounds of pairs that a test read; NetproofError where they contradict each other."""
    values = test.get(PAIRS_KEY) or None
    if values:
        try:
            pair_rounds.PairRounds.from_json(values)
        except NetproofError as error:
            raise NetproofError(f"{test['display_name']}: {error}") from None
    return values
