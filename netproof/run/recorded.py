"""Tests with a record in the session's folder, to which ReFrame's report refers."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import variable
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime
from reframe.utility import osext

from netproof.session import records


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

    def write_record(self, **values: Any) -> None:
        """Write ``values`` into the test's record, with those written before."""
        test = {
            "display_name": self.display_name,
            "unique_name": self.unique_name,
            "system": self.current_system.name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
            "stagedir": self.stagedir,
            "outputdir": self.outputdir,
            "job_nodelist": list(self.job.nodelist) if self.job and self.job.nodelist else None,
            "jobid": self.job.jobid if self.job else None,
            "netproof_kind": self.netproof_kind,
        }
        folder = session_folder()
        try:
            if self.netproof_record:
                path = folder.parent / self.netproof_record["path"]
                values = {**records.read(path)["values"], **values}
            else:
                # A test that is run again is another object, and has a record of its own.
                path = records.new_path(folder, test)
            self.netproof_record = records.write(path, test, values)
        except OSError as error:
            raise ReframeError(f"the record of {self.display_name}: {error}") from None
