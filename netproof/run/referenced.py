"""References of tests; a test without any fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import reframe as rfm
import yaml
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime

from netproof.errors import NetproofError
from netproof.intake import trust
from netproof.verdict import references


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

    @run_before("setup")
    def insist_on_references(self) -> None:
        """Fail before measuring what could not be judged."""
        if self.reference_fault:
            raise ReframeError(self.reference_fault)
