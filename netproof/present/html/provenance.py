"""Last part of a report: how to repeat the run, and where it ran."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from netproof.present.html.html import DataTable, text_table
from netproof.present.html.material import Report, stated
from netproof.present.wording import counted
from netproof.session.node_differences import NodeInJob
from netproof.session.provenance import KIND_CONFIGURATION, KIND_REFERENCES, OfSession

TESTBED = "testbed"
"""The system that ci/testbed builds; ci/setup prepares its machine, and needs root for that."""

_FOLDERS = {
    KIND_CONFIGURATION: ("RFM_CONFIG_PATH", "site-config"),
    KIND_REFERENCES: ("RFM_REFERENCE_PREFIX", "reference-values"),
}
"""Folders of each kind of file: the variable, and its value after ``. ci/activate``."""

_OF_PARTITION = {
    "switch": "switch",
    "NIC": "nic",
    "driver": "driver",
    "Mbit/s": "link_mbit_s",
    "MTU": "mtu",
    "ranks": "rank_counts",
    "ranks a node": "ranks_per_node",
}
"""Columns of the table of partitions, and the site's keys."""


Facts = Mapping[str, object]


@dataclass(frozen=True)
class ProvenanceView:
    """The commands that repeat the run, and all that is known of where it ran.

    ``cautions``: in what a repeat would differ; ``command``: that makes this report again;
    ``changed``: changes of a site's file since; ``not_available``: why nothing is known of software
    and nodes, or empty; ``in_full``: settings of each node.
    """

    commands: tuple[str, ...]
    cautions: tuple[str, ...]
    command: str
    session: Facts
    partitions: DataTable
    changed: tuple[str, ...]
    environments: DataTable | None
    not_available: str = ""
    software: Facts = field(default_factory=dict)
    files: DataTable | None = None
    differences: tuple[str, ...] = ()
    nodes: DataTable | None = None
    in_full: Mapping[str, Facts] = field(default_factory=dict)
    unknown: Facts = field(default_factory=dict)


def view(report: Report) -> ProvenanceView:
    """Return all that the part shows."""
    session, found = report.judged.session, report.provenance
    info = session.info
    commands, cautions = _repeat(report)
    partitions, changed = _partitions(report)
    made = ProvenanceView(
        commands=tuple(commands),
        cautions=tuple(cautions),
        command=report.command,
        session={
            "session": str(session.path),
            "ReFrame": stated(info, "version"),
            "command": stated(info, "cmdline"),
            "run in": stated(info, "workdir"),
            "by": stated(info, "user"),
        },
        partitions=partitions,
        changed=tuple(changed),
        environments=_environments(report),
    )
    if found is None:
        return replace(made, not_available=report.not_there["provenance"])
    software, files = _software(found)
    nodes, in_full = _nodes(found.nodes)
    return replace(
        made,
        software=software,
        files=files,
        differences=tuple(found.differences) if found.nodes else (),
        nodes=nodes,
        in_full=in_full,
        unknown=found.unknown,
    )


def _repeat(report: Report) -> tuple[list[str], list[str]]:
    """Return the commands to repeat the run in a clone, and in what it would differ."""
    info, found = report.judged.session.info, report.provenance
    software = None if found is None else found.software
    lines, cautions = [], []
    if software is not None and software.git_revision:
        lines.append(f"git checkout {shlex.quote(software.git_revision)}")
    else:
        cautions.append("The revision is not known: check out the one that was used yourself.")
    if report.system == TESTBED:
        lines += ["ci/setup", "ci/testbed/testbed up", ". ci/testbed/activate"]
    else:
        lines.append("python3 -m venv .venv && .venv/bin/pip install --editable .")
        lines.append(". ci/activate")
    if software is not None:
        for kind, (variable, folder) in _FOLDERS.items():
            used = {str(Path(file.path).parent) for file in software.files if file.kind == kind}
            own = str(Path(str(info.get("workdir", ""))) / folder)
            lines += [f"export {variable}={shlex.quote(one)}" for one in used - {own}]
        if software.git_changed:
            cautions.append("The checkout held changes that are in no revision.")
        cautions.append(
            "The run is the same where the files of configuration and references have the"
            " SHA-256 that stand below."
        )
    command = info.get("cmdline")
    if command:
        lines.append(_in_any_clone(command, report.system))
    else:
        cautions.append("The session does not state its command.")
    left = len(report.judged.verdict.left)
    if left:
        cautions.append(
            f"{counted(left)} deferred or not measured, see the verdict; the command runs them all."
        )
    return lines, cautions


def _in_any_clone(command: str, system: str) -> str:
    """Return ReFrame's command line with the clone's own ``reframe``, and the system in words."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if not words or PurePath(words[0]).name != "reframe":
        return command
    named = any(word.partition("=")[0] == "--system" for word in words)
    return shlex.join(["reframe", *([] if named else ["--system", system]), *words[1:]])


def _partitions(report: Report) -> tuple[DataTable, list[str]]:
    """Return the session's record of each partition; the site's keys of one not measured."""
    recorded = _recorded(report, "partition")
    rows, changed = [], []
    for name, one in report.judged.matrix.partitions.items():
        now = {title: _said(getattr(one, key)) for title, key in _OF_PARTITION.items()}
        if name not in recorded:
            rows.append((name, *now.values(), "the site's file: nothing was measured"))
            continue
        then = {title: _said(recorded[name][key]) for title, key in _OF_PARTITION.items()}
        rows.append((name, *then.values(), "the session"))
        changed += [
            f"{name}: {title}: {then[title]} when it was measured, {value} in the site's file now"
            for title, value in now.items()
            if value != then[title]
        ]
    return text_table(("partition", *_OF_PARTITION, "by"), rows), changed


def _environments(report: Report) -> DataTable | None:
    """Return the MPI library of each measured environment, and Spack's build of it."""
    several = _recorded(report, "environment")
    if not several:
        return None
    rows = []
    for name, extras in several.items():
        packages = extras.get("built", {}).get("packages", {})
        stated = [f"{package} {one['version']} /{one['hash']}" for package, one in packages.items()]
        rows.append((name, extras["mpi"], "; ".join(stated) or "not built by Spack"))
    return text_table(("environment", "MPI", "package, version and hash"), rows)


def _recorded(report: Report, what: str) -> dict[str, dict[str, Any]]:
    """Return the session's record of each measured ``partition`` or ``environment``."""
    found: dict[str, dict[str, Any]] = {}
    for result in report.judged.session.results:
        if result.measured is not None:
            found.setdefault(getattr(result, what), result.measured[f"{what}_extras"])
    return found


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _software(found: OfSession) -> tuple[Facts, DataTable | None]:
    """Return versions, and files of configuration and references; nothing where none is known."""
    one = found.software
    if one is None:
        return {}, None
    facts = {
        "netproof": one.netproof,
        "ReFrame": one.reframe,
        "Slurm": one.slurm or f"not known: {one.absent.get('slurm', 'no reason is given')}",
        "revision": one.git_revision
        or f"not known: {one.absent.get('git_revision', 'no reason is given')}",
    }
    files = ((file.path, file.kind, file.sha256) for file in one.files)
    return facts, text_table(("file", "kind", "SHA-256"), files)


_NODE_HEAD = ("node", "partition", "CPU", "kernel", "NIC", "driver", "firmware", "Mbit/s", "MTU")


def _nodes(nodes: Sequence[NodeInJob]) -> tuple[DataTable | None, dict[str, Facts]]:
    """Return each node of a partition once; where jobs found changes, the differences say so."""
    if not nodes:
        return None, {}
    once = {(one.partition, one.node.node): one for one in nodes}
    rows, in_full = [], {}
    for found in once.values():
        one = found.node
        stated = (one.cpu, one.kernel, one.nic, one.driver, one.firmware, one.link_mbit_s, one.mtu)
        rows.append((one.node, found.partition, *("–" if v is None else str(v) for v in stated)))
        several = {
            "offloads": one.offloads,
            "coalescing": one.coalescing,
            "sysctls": one.sysctls,
            "programs": one.programs,
        }
        in_full[one.node] = {
            f"{group} {key}": value
            for group, values in several.items()
            for key, value in values.items()
        }
    return text_table(_NODE_HEAD, rows), in_full
