"""The verbs plant and lift: faults on a running testbed."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

from ci.testbed import faults, planting
from ci.testbed.built import built_topology, is_up
from ci.testbed.daemons import Daemons
from ci.testbed.errors import StepFailedError
from ci.testbed.faults import FaultError, Faults
from ci.testbed.machine_lock import machine_lock
from ci.testbed.requirements import PACKAGES, require_programs
from ci.testbed.state import StateFolder
from ci.testbed.topology import Topology
from netproof.errors import NetproofError


def plant(folder: StateFolder, place: str, given: list[str], seconds: float | None) -> int:
    """Plant faults on one place, and lift them after ``seconds`` if given."""
    built = built_topology(folder)
    wanted: dict[str, faults.Value] = {}
    for one in given:
        key, sign, text = one.partition("=")
        if not sign or key in wanted:
            raise FaultError(f"{one}: give each fault once, as KEY=VALUE")
        wanted[key] = built.checked_fault(place, key, faults.read_value(text))

    ours = False

    def with_it(planted: Faults) -> Faults:
        nonlocal ours
        there = planted.get(place, {})
        for key in wanted:
            if key in there:
                raise FaultError(f"{place}: {key} is planted already: run 'testbed lift {place}'")
        excluded = faults.contradiction(there | wanted)
        if excluded:
            raise FaultError(f"{place}: {excluded}")
        ours = True
        return planted | {place: there | wanted}

    def without_it(planted: Faults) -> Faults:
        # Somebody else may have lifted it and planted another one.
        left = {k: v for k, v in planted.get(place, {}).items() if wanted.get(k) != v}
        return planted | {place: left}

    if seconds is None:
        _change(folder, built, with_it)
        print_faults({place: wanted})
        return 0
    # A signal to end also lifts the fault.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _change(folder, built, with_it)
        print_faults({place: wanted})
        time.sleep(seconds)
    finally:
        if ours and is_up(folder):
            _change(folder, built_topology(folder), without_it)
            print_faults({place: wanted}, "lifted")
    return 0


def lift(folder: StateFolder, place: str | None, keys: list[str]) -> int:
    """Lift planted faults: all, all of a place, or only the faults ``keys`` of it."""
    built = built_topology(folder)
    lifted: Faults = {}

    def without(planted: Faults) -> Faults:
        nonlocal lifted
        lifted = planted if place is None else {place: dict(planted.get(place, {}))}
        if place is not None:
            if place not in built.places:
                raise FaultError(f"{place}: no node, leaf or switch of this testbed")
            for key in keys:
                if key not in lifted[place]:
                    there = " ".join(lifted[place]) or "nothing"
                    raise FaultError(f"{place}: {key} is not planted; {there} is")
            if keys:
                lifted = {place: {key: lifted[place][key] for key in keys}}
        return {
            where: {k: v for k, v in of_it.items() if k not in lifted.get(where, {})}
            for where, of_it in planted.items()
        }

    _change(folder, built, without)
    if not any(lifted.values()):
        print("nothing was planted")
    print_faults(lifted, "lifted")
    return 0


def _change(folder: StateFolder, built: Topology, change: Callable[[Faults], Faults]) -> None:
    """Settle the faults after ``change``, or those before it if that fails."""
    require_programs(PACKAGES)
    with machine_lock():
        daemons = Daemons(folder, built)
        now = planting.load(folder, built).planted
        wanted = {place: keys for place, keys in change(now).items() if keys}
        try:
            planting.settle(folder, daemons, built, wanted)
        except StepFailedError as error:
            try:
                planting.settle(folder, daemons, built, now)
            except NetproofError as again:
                raise StepFailedError(
                    f"{error}; and not as before either: {again}; run 'testbed up'"
                ) from error
            raise


def print_faults(planted: Faults, what: str = "planted") -> None:
    """Print a line for each fault."""
    for place, keys in planted.items():
        for line in faults.assignments(place, keys):
            print(f"{what} {line}", flush=True)
