"""Parts that the tests of a run have in common."""

from __future__ import annotations

import contextlib
import functools
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import yaml
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError, ReframeFatalError
from reframe.core.runtime import runtime
from reframe.utility import osext

from netproof.errors import NetproofError
from netproof.intake import trust
from netproof.session import records
from netproof.session.plan import partition_of
from netproof.site.partition import Partition
from netproof.verdict import references

NOT_LOGGED = frozenset(
    (
        *("build_locally", "build_time_limit", "env_vars", "exclusive_access", "executable"),
        *("executable_opts", "extra_resources", "functions", "_job_submit_time", "keep_files"),
        *("local", "max_pending_time", "modules", "num_cpus_per_task", "num_gpus_per_node"),
        *("num_tasks", "num_tasks_per_core", "num_tasks_per_node", "num_tasks_per_socket"),
        *("postbuild_cmds", "postrun_cmds", "prebuild_cmds", "prefix", "prerun_cmds"),
        *("readonly_files", "short_name", "sourcepath", "sourcesdir", "strict_check"),
        *("time_limit", "use_multithreading", "valid_prog_environs", "valid_systems", "variants"),
        # In the test's name, or in its record.
        *("direction", "function", "job_ranks", "launches", "path", "protocol", "ranks"),
    )
)
"""Attributes that are empty, the same in every run, or said elsewhere."""


_GENERATES = (
    "it would run nothing: ReFrame makes further tests only of those that wait for no job; for more"
    " launches give -S launches=N, and for another session run it again"
)
_REFUSED = {
    "restore-session": "netproof's tests cannot go on in an earlier session, whose cases its report"
    " would lack: run all again, or what -n, -p and --system choose",
    "ci-generate": "it would make a session of each test, and netproof judges a session as a whole:"
    " let one job of the pipeline run 'netproof nightly' (ci/gitlab-ci.yml)",
    **dict.fromkeys(("repeat", "distribute", "parameterize"), _GENERATES),
}
"""ReFrame's options with which a run would be green and have measured nothing, or not all."""


def refused(words: Sequence[str]) -> str:
    """Return why ReFrame's command line, or a mode of the site that it names, is refused; or ""."""
    for place, word in enumerate(words):
        option, _, value = word.removeprefix("--").partition("=")
        if word.startswith("-P"):
            option = "parameterize"
        elif not word.startswith("--") or len(option) < 3:
            continue
        # argparse takes any beginning that is no other option's.
        for name, why in _REFUSED.items():
            if name.startswith(option) and option not in ("rep", "par"):
                return f"leave out --{name}: {why}"
        if "mode".startswith(option):
            name = value or " ".join(words[place + 1 : place + 2])
            chosen = runtime().site_config.get(f"modes/@{name}/options") or ()
            if why := refused([part for one in chosen for part in shlex.split(one)]):
                return f"mode {name}: {why}"
    return ""


class OnPartition(rfm.RegressionTestPlugin):
    """A test on a site's partition; its log and report have only what differs between runs.

    ReFrame reads all attributes for each message. Before it suppresses the warning of a deprecated
    one, it looks up the source of every stack frame, which is most of its work between jobs.
    """

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Return attributes and their names in the log, as ReFrame's metaclass does."""
        out = {name for name, one in cls.var_space.items() if one.is_deprecated()} | NOT_LOGGED
        # ReFrame's metaclass has it.
        every = type(cls).loggable_attrs(cls)  # type: ignore[attr-defined]
        return [one for one in every if one[0] not in out]

    def site_partition(self) -> Partition:
        """Return what the site says of the partition."""
        partition = self.current_partition
        return partition_of(partition.extras, partition.fullname)

    def place(self) -> tuple[str, str, str]:
        """Return the system, partition and environment."""
        return (
            self.current_system.name,
            self.current_partition.name,
            self.current_environ.name,
        )


class Launched(OnPartition):
    """Launches per function, for the job that makes them and the check that counts them.

    Both have the variable, so that ``-S launches=N`` sets it everywhere.
    """

    launches = variable(int, value=3)


@functools.cache
def session_folder() -> Path:
    """Return the folder of this run, beside ReFrame's reports; the first call makes it."""
    reports = Path(osext.expandvars(runtime().get_option("general/0/report_file"))).parent
    try:
        return records.make_folder(reports)
    except OSError as error:
        raise ReframeError(f"{reports}: the session's folder cannot be made: {error}") from None


class RecordedTest(rfm.RegressionTestPlugin):
    """A test with a record; the report has its path and SHA-256, ``netproof_record``."""

    netproof_record = variable(dict, value={}, loggable=True)

    @run_after("init")
    def refuse_options(self) -> None:
        """Raise ReframeFatalError for an option with which a session would have no verdict."""
        reason = refused(sys.argv[1:])
        if reason:
            raise ReframeFatalError(reason)

    @property
    def recorded_job(self) -> Any:
        """Return the job whose results the record has."""
        return self.job

    def write_record(self, **values: Any) -> None:
        """Write ``values`` into the test's record, with those written before."""
        job = self.recorded_job
        test = {
            "display_name": self.display_name,
            "unique_name": self.unique_name,
            "system": self.current_system.name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
            "stagedir": self.stagedir,
            "outputdir": self.outputdir,
            "job_nodelist": list(job.nodelist) if job and job.nodelist else None,
            "jobid": job.jobid if job else None,
            "netproof_kind": self.netproof_kind,
        }
        folder = session_folder()
        try:
            if self.netproof_record:
                path = folder.parent / self.netproof_record["path"]
                values = {**records.read(path, parts=False)["values"], **values}
            else:
                # A test that is run again is another object, and has a record of its own.
                path = records.new_path(folder, test)
            self.netproof_record = records.write(path, test, values)
        except OSError as error:
            raise ReframeError(f"the record of {self.display_name}: {error}") from None


@contextlib.contextmanager
def _read_by_libyaml() -> Iterator[None]:
    """Parse YAML with libyaml: Python's parser takes a third of ReFrame's start."""
    usual = yaml.SafeLoader
    # A module's attribute, which mypy takes for a type.
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", usual)  # type: ignore[misc]
    try:
        yield
    finally:
        yaml.SafeLoader = usual  # type: ignore[misc]


class Referenced(rfm.RegressionTestPlugin):
    """A test with bounds from reference-values/<system>.yaml; it fails without them.

    ReFrame would drop the test at load if the file is missing or broken, and an empty run is
    green; so the fault is stored and raised when the test is set up.
    """

    reference_fault = variable(str, value="", loggable=False)

    @run_after("init")
    def take_references(self) -> None:
        """Read the system's reference file."""
        prefix = runtime().get_option("general/0/reference_prefix")
        name = f"{self.current_system.name}.yaml"
        try:
            if prefix is None:
                raise NetproofError("RFM_REFERENCE_PREFIX is not set; source the site's activate")
            path = Path(prefix) / name
            trust.insist(path, "references")
            if path.exists():
                # ReFrame has no limits, and takes the second value of a duplicate key.
                references.readable(path)
            with _read_by_libyaml():
                self.reference = {"$ref": str(path)}
        except Exception as error:
            self.reference_fault = f"no references, {Path(prefix or '') / name}: {error}"

    def __ref_missing_ranks__(self, level: Mapping[Any, Any], ranks: int) -> Any:
        """Return the entry below an expression that fits a rank count; KeyError without one."""
        return level[references.matching(level, ranks)]

    @run_before("setup")
    def insist_on_references(self) -> None:
        """Fail before measuring what could not be judged."""
        if self.reference_fault:
            raise ReframeError(self.reference_fault)
