"""A session's folder: what each test left, written when the test has it, and read again.

A run makes the folder before its first job. Each test writes a record of its own, whole or not at
all, and ReFrame's report refers to it by path and SHA-256. Each case of a record, and each launch
of pairs, is a file in a folder of the record's name, to which the record refers by SHA-256: no file
grows with both the nodes and the cases. Where ReFrame left no report, since the run goes on or was
killed, the records are read alone: what no record has was not measured. A report of a run that was
ended lacks what no check had read, and gets it from there.
"""

from __future__ import annotations

import dataclasses
import getpass
import hashlib
import itertools
import json
import os
import socket
import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.errors import NetproofError
from netproof.intake import disk, trust
from netproof.measurement.case import Case
from netproof.measurement.counters import Counters
from netproof.session import job_files, node_facts
from netproof.session.job_files import Incomplete
from netproof.session.measured import Launch, Measured
from netproof.session.plan import PLAN_FILE, JobPlan

KEY = "netproof_record"
"""The key under which the report refers to a test's record: its ``path`` and ``sha256``."""

FOLDERS = "session-*"
"""Session folders, next to the reports."""

HEADER = "session.json"

FORMAT = 9

CASES = "netproof_cases"
"""The key under which a job's record has its cases: measured, or why not."""

MEASURED = "netproof_measured"

PAIRS = "netproof_pairs"
"""The key under which a test has its rounds of pairs."""

ENVIRONMENTS = "netproof_environments"
"""The key under which a job's record has the values of each environment, by its name."""

PARTS = {CASES: ("cases", Measured), PAIRS: ("launches", Launch)}
"""Keys of a record, and the list below each of what has files of its own.

A case that was not measured has none: the list has why.
"""

JOB_RECORD = "record.json"
"""Record that a job's program leaves in its folder once all is decided, repeats included."""

ENDED_EARLY = "the run goes on, or was ended before its last test"


def make_folder(reports: Path) -> Path:
    """Make the folder of a run that begins, among ``reports``; OSError where that is refused."""
    began = datetime.now(UTC)
    folder = reports / f"session-{began:%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir(parents=True)
    header = {
        "format": FORMAT,
        "hostname": socket.gethostname(),
        "user": getpass.getuser(),
        "cmdline": " ".join(sys.argv),
        "time_start_unix": began.timestamp(),
        "workdir": os.getcwd(),
    }
    disk.replace(folder / HEADER, sealed(header))
    return folder


def measured_of(folder: Path, planned: JobPlan) -> dict[Case, Measured | Incomplete]:
    """Read the cases that a job measured in a folder, or why one is not complete."""
    found: dict[Case, Measured | Incomplete] = {}
    over_tcp, place = planned.environment_extras["mpi_over_tcp"], planned.partition
    for case in planned.cases:
        try:
            found[case] = job_files.of_job(
                folder, case, place, planned.launches, mpi_over_tcp=over_tcp
            )
        except Incomplete as error:
            found[case] = error
    return found


def cases_of(
    folder: Path, planned: JobPlan, measured: Mapping[Case, Measured | Incomplete]
) -> dict[str, Any]:
    """Return what a job measured in a folder as plain values for its record; OSError if it did not.

    Its number is by its own word.
    """
    noted = disk.json_file(folder / node_facts.JOB_NODES_FILE)
    shared = {
        "partition_extras": planned.extras,
        "environment_extras": planned.environment_extras,
        "seed": planned.seed,
        "jobid": "".join(noted),
    }
    cases = [
        {"case": dataclasses.asdict(case), "why": str(one)} if isinstance(one, Incomplete) else one
        for case, one in measured.items()
    ]
    return {"shared": shared, "cases": cases}


def new_path(folder: Path, test: Mapping[str, Any]) -> Path:
    """Return a path for a record that ``folder`` does not have: a test may be run again."""
    name = f"{test['unique_name']}+{test['partition']}+{test['environ']}"
    return next(
        path
        for number in itertools.count(1)
        if not (path := folder / f"{name}+{number}.json").exists()
    )


def write(path: Path, test: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Write what a test left, and return the reference to it for ReFrame's report."""
    text = sealed({"format": FORMAT, "test": dict(test), "values": _with_parts(path, values)})
    disk.replace(path, text)
    return {"path": f"{path.parent.name}/{path.name}", "sha256": _sha256(text.encode())}


def _with_parts(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Write what was measured, and return the values with its SHA-256."""
    values = dict(values)
    for key, (below, _) in PARTS.items():
        if values.get(key):
            several = [_part(path, one) for one in values[key][below]]
            values[key] = {**values[key], below: several}
    if environments := values.get(ENVIRONMENTS):
        parts = {name: _with_parts(path, one) for name, one in environments.items()}
        values[ENVIRONMENTS] = parts
    return values


def _part(path: Path, value: Any) -> Any:
    """Write what was measured, unless it is written, and return its SHA-256.

    The first line has the names of counters, which the second refers to.
    """
    plain = codec.encode(value)
    if isinstance(plain, str) or plain.keys() == {"case", "why"}:
        return plain
    numbers: dict[tuple[str, ...], int] = {}
    folded = _folded(plain, numbers)
    text = "".join(
        json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n"
        for line in ([*numbers], folded)
    )
    sha256 = _sha256(text.encode())
    target = path.with_suffix("") / f"{sha256[:32]}.json"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        disk.replace(target, text)
    return sha256


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sealed(record: Mapping[str, Any]) -> str:
    """Return a record as JSON whose last key is the SHA-256 of what stands before it."""
    text = json.dumps(record, separators=(",", ":"), allow_nan=False).removesuffix("}")
    return f'{text},"sha256":"{_sha256(text.encode())}"}}\n'


def _unsealed(path: Path, content: bytes) -> Any:
    """Return a record's values without its SHA-256; NetproofError where that is another one."""
    body, seal = content[:-_SEAL], content[-_SEAL:]
    if seal != b',"sha256":"%b"}\n' % _sha256(body).encode():
        raise NetproofError(f"{path}: is damaged or cut short: {_OTHER}")
    return disk.sealed_value(body + b"}", path)


_RESTORE = "restore the session's folder from a backup, or run again"

_OTHER = f"its SHA-256 is not the one written; {_RESTORE}"

_SEAL = len(',"sha256":""}\n') + 64


def _folded(value: Any, names: dict[tuple[str, ...], int]) -> Any:
    """Return plain values whose counters refer to sets of names, alike in every launch."""
    if isinstance(value, list):
        return [_folded(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == _COUNTERS:
        numbers = [names.setdefault(tuple(several), len(names)) for several in value["names"]]
        return {**value, "names": numbers}
    return {key: one if key in _FLAT else _folded(one, names) for key, one in value.items()}


_COUNTERS = {one.name for one in dataclasses.fields(Counters)}

_FLAT = {"ranks", "loads", "curves", "twin", "pairs"}
"""Keys of a launch without counters below them, and with most of its values."""


def resolve(document: Mapping[str, Any], report: Path) -> None:
    """Put what records have in the place of the references to them in a report's document.

    A job is a test for each environment from then on. Raises NetproofError for a record that is
    missing, altered or not what the report refers to.
    """
    for run in document["runs"]:
        cases: dict[tuple[Any, ...], Any] = {}
        several = []
        for test in run["testcases"]:
            found = [test]
            if reference := test.get(KEY):
                place = f"{test.get('display_name')}: {KEY}"
                reference = codec.decode(dict[str, str], reference, place)
                if reference.keys() != {"path", "sha256"}:
                    raise NetproofError(f"{place}: is no path and SHA-256")
                path = report.parent / reference["path"]
                record = read(path, reference["sha256"])
                for key in ("unique_name", "system", "partition", "environ"):
                    if record["test"].get(key) != test.get(key):
                        raise NetproofError(
                            f"{path}: is of {record['test'].get(key)}, and the report refers to it"
                            f" for {test.get(key)}"
                        )
                with _of_records(path):
                    found = _by_environment(test | record["values"])
                    for one in found:
                        cases |= _cases(one)
            several += found
        counted = codec.decode(int, run.get("num_cases"), "a run: num_cases")
        run["num_cases"] = counted + len(several) - len(run["testcases"])
        run["testcases"] = several
        for test in several:
            if test.get("netproof_complete") and _key(test) in cases:
                test[MEASURED] = cases[_key(test)][MEASURED]


def _by_environment(test: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a job as a test for each environment that its record has; any other test as it is."""
    several = test.pop(ENVIRONMENTS, None)
    return [test | {"environ": name} | one for name, one in several.items()] if several else [test]


def completed(document: dict[str, Any], report: Path) -> dict[str, Any]:
    """Return a resolved report; of a run that ReFrame ended, with all that its records have."""
    tests = [test for run in document["runs"] for test in run["testcases"]]
    # A test that failed before its job has an empty record.
    folders = {Path(test[KEY]["path"]).parent for test in tests if test.get(KEY)}
    if not folders or all(test.get("result") != "abort" for test in tests):
        return document
    known = {_name(test): test for test in tests if test.get("result") != "abort"}
    several = []
    for folder in sorted(folders):
        (run,) = document_of(report.parent / folder)["runs"]
        several += [known.pop(_name(test), test) for test in run["testcases"]]
    several += known.values()
    return {**document, "runs": [{"num_cases": len(several), "testcases": several}]}


@contextmanager
def _of_records(path: Path) -> Iterator[None]:
    """Raise NetproofError, with the path, for a record whose values are of another form."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise NetproofError(f"{path}: is no record: {error!r}; {_RESTORE}") from error


def document_of(folder: Path) -> dict[str, Any]:
    """Return a session's folder without a report in the form of ReFrame's report.

    What a job measured and no test has read is taken from the job's own folder. Of a case that a
    job measured and no check looked at, the verdict finds what its references say; a case that no
    job measured yet did not run, and the run has failed. Raises NetproofError for a record or
    header that is damaged.
    """
    try:
        header = _unsealed(folder / HEADER, disk.read_bytes(folder / HEADER))
    except FileNotFoundError:
        raise NetproofError(
            f"{folder}: is a folder, and no session's: it has no {HEADER}; give a report in it"
        ) from None
    except OSError as error:
        raise NetproofError(
            f"{folder}: cannot be read as a session's folder: {HEADER}: {error.strerror}"
        ) from None
    tests: dict[tuple[str, ...], dict[str, Any]] = {}
    cases: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, Any]]] = {}
    paths = sorted(
        (path for path in folder.glob("*.json") if path.name != HEADER),
        key=lambda path: int(path.stem.rpartition("+")[2]),
    )
    for path in paths:
        record = read(path)
        with _of_records(path):
            for test in _by_environment({"result": "pass", **record["test"], **record["values"]}):
                tests[test["unique_name"], test["partition"], test["environ"]] = test
                cases |= {key: (test, case) for key, case in _cases(test).items()}
    seen = {test[PAIRS]["jobid"] for test in tests.values() if test.get(PAIRS)}
    jobs = {}
    for key, test in [*tests.items()]:
        if test.get("netproof_kind") == "launches":
            jobs[test["stagedir"]] = test
        own = Path(test["stagedir"], JOB_RECORD)
        rounds = read(own)["values"].get(PAIRS) if own.exists() else None
        if rounds and rounds["jobid"] not in seen:
            found = {name: test[name] for name in ("display_name", *_PLACE)}
            tests[*key, PAIRS] = {**found, "netproof_kind": "pairs", PAIRS: rounds, **_RUN_ENDED}
    for folder_of_job, test in jobs.items():
        for plan in sorted(Path(folder_of_job).glob(f"*/{PLAN_FILE}")):
            job = {**test, "environ": plan.parent.name}
            job[CASES] = _not_seen(plan.parent, cases)
            cases = {**{key: (job, case) for key, case in _cases(job).items()}, **cases}
    for test in tests.values():
        if test.get("netproof_case"):
            _, case = cases.pop(_key(test), ({}, {}))
            if MEASURED in case and test.get("netproof_complete"):
                test[MEASURED] = case[MEASURED]
            if test.get("netproof_references") is None:
                test |= _failed(case)
    several = [*tests.values()]
    for job, case in cases.values():
        described = {key: case["case"][key] for key in CASE_KEYS}
        several.append(
            {
                **{key: job[key] for key in _PLACE},
                "display_name": f"{described['function']} of {job['display_name']}",
                "netproof_kind": "check",
                "netproof_case": described,
                MEASURED: case.get(MEASURED),
                **_failed(case),
            }
        )
    several.append(
        {
            "display_name": "ReFrame",
            "system": several[0]["system"] if several else "",
            **dict.fromkeys(("partition", "environ"), ""),
            "stagedir": str(folder),
            **_RUN_ENDED,
        }
    )
    newest = max((path.stat().st_mtime for path in paths), default=header["time_start_unix"])
    info = {**header, "uuid": folder.name, "time_end_unix": newest, "version": "not known"}
    return {
        "session_info": info,
        "runs": [{"num_cases": len(several), "testcases": several}],
    }


CASE_KEYS = ("benchmark", "function", "ranks", "path", "direction")
"""Keys of a test's ``netproof_case``."""

_RUN_ENDED = {"result": "fail", "fail_phase": "run", "fail_reason": ENDED_EARLY}

_PLACE = ("system", "partition", "environ", "job_nodelist", "outputdir", "stagedir")


def _not_seen(folder: Path, seen: Container[tuple[Any, ...]]) -> dict[str, Any]:
    """The cases of a job that ended, or is under way, after ReFrame last looked.

    One that has decided all has a record of its own. Of any other they are those whose first
    launches are complete, and once it has ended by itself, why others are not.
    """
    own = folder / JOB_RECORD
    try:
        planned = JobPlan.read(folder / PLAN_FILE)
        names = ("partition", "environment", *CASE_KEYS)
        if all(tuple(getattr(case, name) for name in names) in seen for case in planned.cases):
            return {}
        if own.exists():
            return dict(read(own)["values"][CASES])
        found = cases_of(folder, planned, measured_of(folder, planned))
        noted = (folder / job_files.JOB_FILE).exists()
        if not noted or job_files.JobReport.read(folder).ended:
            # It goes on, or was ended with the run: the rest has not run.
            found["cases"] = [one for one in found["cases"] if isinstance(one, Measured)]
        return found
    except (NetproofError, OSError, KeyError, TypeError):
        if own.exists():
            raise
        # It has not begun, or its folder is gone or another's.
        return {}


def _failed(case: Mapping[str, Any]) -> dict[str, Any]:
    """How a case stands that no check came to the end of; one without a reason did not run."""
    measured = MEASURED in case
    return {
        "result": "fail" if measured or "why" in case else "skip",
        "fail_phase": "performance" if measured else "sanity",
        "fail_reason": case.get("why", f"{ENDED_EARLY} before references were looked at"),
    }


def _name(test: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(test.get(key)) for key in ("unique_name", "partition", "environ"))


def _key(test: Mapping[str, Any]) -> tuple[Any, ...]:
    case = test.get("netproof_case") or {}
    return (test["partition"], test["environ"], *(case.get(key) for key in CASE_KEYS))


def _cases(test: dict[str, Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The cases of a job's record by what they are, with what all of them have alike."""
    values = test.pop(CASES, None)
    if not values:
        return {}
    found = {}
    for one in values["cases"]:
        if isinstance(one, Measured):
            own = {name: getattr(one, name) for name in Measured.__dataclass_fields__}
            own["case"] = dict(vars(one.case))
            one = {"case": own["case"], MEASURED: own | values["shared"]}
        found[_key({**test, "netproof_case": one["case"]})] = one
    return found


def read(path: Path, sha256: str | None = None, *, parts: bool = True) -> dict[str, Any]:
    """Return a record with its ``parts``, else with their SHA-256; NetproofError."""
    trust.insist(path, "a record of the session", data=True)
    content = _content(
        path, sha256, "the report refers to it, so keep the session's folder next to the report"
    )
    with _of_records(path):
        record = _unsealed(path, content)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        form = record.get("format") if isinstance(record, dict) else None
        raise NetproofError(
            f"{path}: is no record, or of format {form!r}, and this netproof reads {FORMAT}:"
            " read it by the version that wrote it, or run again"
        )
    for key in ("test", "values"):
        codec.decode(dict[str, Any], record.get(key), f"{path}: is no record: {key}")
    with _of_records(path):
        several = [record["values"], *record["values"].get(ENVIRONMENTS, {}).values()]
        for key, (below, kind) in PARTS.items() if parts else ():
            for values in filter(None, (one.get(key) for one in several)):
                values[below] = [_read_part(path, one, kind) for one in values[below]]
    return record


def _read_part(record: Path, part: Any, kind: type) -> Any:
    if isinstance(part, dict):
        return part
    path = record.with_suffix("") / f"{part[:32]}.json"
    content = _content(path, part, "its record refers to it, so keep the session's folder whole")
    disk.insist_on_few(content, (b",", b"[", b"{"), path)
    names, _, value = content.partition(b"\n")
    with _of_records(path):
        try:
            return codec.decode(kind, value, "line 2", _names(names))
        except NetproofError as error:
            raise NetproofError(f"{path}: is no record: {error}; {_RESTORE}") from error


@lru_cache(maxsize=64)
def _names(line: bytes) -> dict[int, tuple[str, ...]]:
    """Return sets of counters' names by number; cases of a site have the same. NetproofError."""
    return dict(enumerate(codec.decode(tuple[tuple[str, ...], ...], line, "line 1: names")))


def _content(path: Path, sha256: str | None, remedy: str) -> bytes:
    """Return a file's bytes; NetproofError where it is missing or has another SHA-256."""
    try:
        content = disk.read_bytes(path)
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    if sha256 is not None and _sha256(content) != sha256:
        raise NetproofError(f"{path}: is not what the test left: {_OTHER}")
    return content
