"""The testbed's command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ci.testbed import processes, state
from ci.testbed.built import built_topology
from ci.testbed.daemons import Daemons
from ci.testbed.errors import CannotRunError
from ci.testbed.faults import FaultError
from ci.testbed.requirements import PACKAGES, require_programs, require_root
from ci.testbed.state import StateFolder
from ci.testbed.topology import TopologyError
from ci.testbed.verbs.down import down
from ci.testbed.verbs.plant import lift, plant
from ci.testbed.verbs.status import status
from ci.testbed.verbs.up import up
from netproof.errors import NetproofError

DEFAULT_TOPOLOGY = Path(__file__).with_name("topology.yaml")


def main(arguments: list[str]) -> int:
    """Run one verb; return 0 on success, 1 if something is down or failed, 2 if not possible."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        require_root()
        folder = StateFolder(options.state)
        if options.verb == "up":
            return up(folder, options.topology)
        if options.verb == "down":
            return down(folder)
        if options.verb == "status":
            return status(folder)
        if options.verb == "plant":
            return plant(folder, options.place, options.faults, options.seconds)
        if options.verb == "lift":
            return lift(folder, options.place, options.keys)
        command = options.command
        if command[:1] == ["--"]:
            command = command[1:]
        if not command:
            parser.error("exec: name a command: exec NODE -- COMMAND")
        return run_in_node(folder, options.node, command)
    except (CannotRunError, FaultError, TopologyError) as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 2
    except NetproofError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("testbed: interrupted; up goes on from here, down takes it away", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="testbed", description="A real multi-node Slurm cluster on this machine."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    texts = {
        "up": "bring the testbed up, or heal what is dead of it",
        "down": "take everything away again, its job history too",
        "status": "say how each switch and node is; exit 0 only if all is well",
        "plant": "make a node, an uplink or a switch faulty, until lift, up or down",
        "lift": "take what is planted away again: all of it, all of a place, or one fault",
        "exec": "run a command inside a node",
    }
    for verb, text in texts.items():
        added = verbs.add_parser(verb, help=text, description=text)
        added.add_argument(
            "--state",
            type=Path,
            default=Path(os.environ.get(state.VARIABLE) or state.DEFAULT),
            metavar="DIR",
            help=f"the folder that everything lives in (default: {state.VARIABLE}, else"
            f" {state.DEFAULT})",
        )
        if verb == "up":
            added.add_argument(
                "--topology",
                type=Path,
                default=DEFAULT_TOPOLOGY,
                metavar="FILE",
                help="the switches and their nodes (default: %(default)s)",
            )
        if verb == "plant":
            added.add_argument("place", metavar="PLACE", help="a node, a leaf or a switch")
            added.add_argument("faults", nargs="+", metavar="KEY=VALUE")
            added.add_argument(
                "--for",
                dest="seconds",
                type=_seconds,
                metavar="SECONDS",
                help="wait so long, then lift it again",
            )
        if verb == "lift":
            added.add_argument("place", nargs="?", metavar="PLACE")
            added.add_argument("keys", nargs="*", metavar="KEY")
        if verb == "exec":
            added.add_argument("node", metavar="NODE")
            added.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


def run_in_node(folder: StateFolder, name: str, command: list[str]) -> int:
    """Becomes ``command`` in the namespaces of the node ``name``; its exit status is ours."""
    require_programs({"nsenter": PACKAGES["nsenter"]})
    built = built_topology(folder)
    daemon = Daemons(folder, built).slurmd(built.node(name))
    if daemon is None:
        raise CannotRunError(f"node {name} is down: run 'testbed up'")
    namespaces = ["--net", "--uts", "--mount", "--ipc", f"--wdns={Path.cwd()}"]
    processes.go_first()
    os.environ["SLURM_CONF"] = str(folder / state.CONF)
    os.execvp("nsenter", ["nsenter", f"--target={daemon}", *namespaces, "--", *command])
