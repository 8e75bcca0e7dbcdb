"""Parts that the tests of a run have in common."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
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
from netproof.site.partition import Partition
from netproof.verdict import references

NOT_LOGGED = frozenset(
    (
        *("build_locally", "build_time_limit", "env_vars", "exclusive_access", "executable"),
        *("executable_opts", "extra_resources", "functions", "keep_files", "local"),
        *("max_pending_time", "modules", "num_gpus_per_node", "num_tasks_per_core"),
        *("num_tasks_per_socket", "postbuild_cmds", "postrun_cmds", "prebuild_cmds"),
        *("prefix", "prerun_cmds", "readonly_files", "short_name", "sourcepath"),
        *("sourcesdir", "strict_check", "time_limit", "use_multithreading"),
        *("valid_prog_environs", "valid_systems", "variants"),
    )
)
"""Attributes that are empty, or the same in every run: a third of a test in ReFrame's report."""


class OnPartition(rfm.RegressionTestPlugin):
    """A test on a site's partition; its log and report have only what differs between runs.

    ReFrame reads all attributes for each message. Before it suppresses the warning of a deprecated
    one, it looks up the source of every stack frame, which is most of its work between jobs.
    """

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Return attributes and their names in the log, as ReFrame's metaclass does."""
        out = {name for name, one in cls.var_space.items() if one.is_deprecated()} | NOT_LOGGED
        return [one for one in type(cls).loggable_attrs(cls) if one[0] not in out]

    def site_partition(self) -> Partition:
        """Return what the site says of the partition."""
        return Partition.model_validate(self.current_partition.extras)

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
    def refuse_to_restore(self) -> None:
        """Raise ReframeFatalError if ReFrame is to restore an earlier session.

        Its report would lack all cases that are not run again, and a verdict on it would be red.
        """
        if any(word.startswith("--rest") for word in sys.argv[1:]):
            raise ReframeFatalError(
                "netproof's tests cannot go on in an earlier session: leave out --restore-session"
                " (and --failed), and run all again, or what -n, -p and --system choose"
            )

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
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", usual)
    try:
        yield
    finally:
        yaml.SafeLoader = usual


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
