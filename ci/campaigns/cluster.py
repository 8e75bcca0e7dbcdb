"""The testbed of this machine, for the runs of a campaign."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ci.campaigns.command_line import CANNOT
from ci.campaigns.errors import CannotRunError
from ci.campaigns.keeping import ROOT
from ci.campaigns.telling import now
from ci.testbed import topology_reading
from ci.testbed.state import DEFAULT as STATE
from netproof.errors import NetproofError

TESTBED = ROOT / "ci" / "testbed" / "testbed"
LOG_LINES = 3


class Testbed:
    """The testbed of this machine, which is left as it was found."""

    def __init__(self, log: Path) -> None:
        """Record the testbed's state. Raises CannotRunError if it has jobs or is not available."""
        self._log = log
        self._found = log.with_name("topology-as-found.yaml")
        # Daemons of an earlier part of the campaign may run with another topology.
        self._topology: Path | None = None
        os.environ["SLURM_CONF"] = str(STATE / "slurm.conf")
        self._was_up = self._command("status") != CANNOT
        if self._was_up:
            shutil.copyfile(STATE / "topology.yaml", self._found)
            queue = subprocess.run(
                ["squeue", "--noheader"], capture_output=True, text=True, check=False
            )
            if queue.returncode == 0 and queue.stdout.strip():
                raise CannotRunError("the testbed has jobs: let them end, or cancel them")

    def up(self, topology: Path) -> None:
        """Bring it up with ``topology``. Raises NetproofError if a part fails, CannotRunError."""
        if self._topology != topology:
            self._checked("down")
            self._topology = topology
        self._checked("up", "--topology", str(topology))

    def plant(self, place: str, fault: Mapping[str, object]) -> None:
        """Plant a fault. Raises NetproofError if the kernel does not take it, CannotRunError."""
        self._checked("plant", place, *(f"{key}={value}" for key, value in fault.items()))

    def plant_for(
        self, place: str, fault: Mapping[str, object], seconds: float
    ) -> subprocess.Popen[bytes]:
        """Start a process that plants a fault, and lifts it after ``seconds`` or when ended."""
        verb = ("plant", place, *(f"{key}={value}" for key, value in fault.items()))
        verb = (*verb, "--for", f"{seconds:g}")
        with self._logged(*verb) as log:
            return subprocess.Popen([TESTBED, *verb], stdout=log, stderr=subprocess.STDOUT)

    def lift(self) -> None:
        """Remove all planted faults. Raises NetproofError if one stays."""
        self._checked("lift")

    @contextmanager
    def planted_on_all(self, switch: str, fault: Mapping[str, object]) -> Iterator[None]:
        """Plant a fault on each node of a switch, and lift it at the end of the block.

        Nothing is planted if ``fault`` is empty. Raises as ``plant`` and ``lift``.
        """
        if not fault:
            yield
            return
        switches = {one.name: one for one in topology_reading.load(self._topology).switches}
        try:
            for node in switches[switch].nodes:
                self.plant(node.name, fault)
            yield
        finally:
            self.lift()

    def rebuild(self) -> None:
        """Have it taken down before the next run."""
        self._topology = None

    def restore(self) -> None:
        """Leave it as it was found. Raises NetproofError if that fails."""
        self._checked("down")
        if self._was_up:
            self._checked("up", "--topology", str(self._found))

    def _checked(self, *verb: str) -> None:
        status = self._command(*verb)
        if status == 0:
            return
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        reason = f"testbed {verb[0]} ended with {status}: {' | '.join(lines)}"
        raise CannotRunError(reason) if status == CANNOT else NetproofError(reason)

    def _command(self, *verb: str) -> int:
        with self._logged(*verb) as log:
            return subprocess.run(
                [TESTBED, *verb], stdout=log, stderr=subprocess.STDOUT, check=False
            ).returncode

    @contextmanager
    def _logged(self, *verb: str) -> Iterator[IO[str]]:
        with self._log.open("a") as log:
            print(f"{now()} testbed {' '.join(verb)}", file=log, flush=True)
            yield log
