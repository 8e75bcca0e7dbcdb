"""The last part of a report: how to repeat the run, and where it ran."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from netproof.present.html.html import Markup, element, joined, row, table
from netproof.present.html.material import Report, stated
from netproof.session.provenance import KIND_CONFIGURATION, KIND_REFERENCES, NodeInJob, OfSession

NODES_SHOWN = 8
"""How many nodes are there to be opened one by one before their list is to be opened too."""


TESTBED = "testbed"
"""The system that ci/testbed builds; ci/setup prepares its machine, and needs root for that."""

_FOLDERS = {
    KIND_CONFIGURATION: ("RFM_CONFIG_PATH", "site-config"),
    KIND_REFERENCES: ("RFM_REFERENCE_PREFIX", "reference-values"),
}
"""Where a kind of file is looked for: the variable, and its value after ``. ci/activate``."""

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


def part(report: Report) -> Markup:
    """The commands that repeat the run, and all that is known of where it ran."""
    session, found = report.judged.session, report.provenance
    info = session.info
    parts: list[Markup | None] = []
    if found is None:
        parts.append(element("p", f"It cannot be told: {report.not_there['provenance']}"))
    else:
        parts += [_software(found), _differences(found), _nodes(found.nodes), _unknown(found)]
    facts = _facts(
        {
            "session": str(session.path),
            "ReFrame": stated(info, "version"),
            "command": stated(info, "cmdline"),
            "run in": stated(info, "workdir"),
            "by": stated(info, "user"),
        }
    )
    return joined(
        _repeat(report),
        element("h3", "The session"),
        facts,
        _partitions(report),
        _environments(report),
        parts,
    )


def _repeat(report: Report) -> Markup:
    """What to type in a clone to run the same again, and in what it would not be the same."""
    info, found = report.judged.session.info, report.provenance
    software = None if found is None else found.software
    lines, told = [], []
    if software is not None and software.git_revision:
        lines.append(f"git checkout {shlex.quote(software.git_revision)}")
    else:
        told.append("The revision is not known: check out the one that was used yourself.")
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
            told.append("The checkout held changes that are in no revision.")
        told.append(
            "The run is the same where the files of configuration and references have the"
            " SHA-256 that stand below."
        )
    command = info.get("cmdline")
    if command:
        lines.append(_in_any_clone(command, report.system))
    else:
        told.append("The session does not state its command.")
    left = len(report.judged.verdict.left)
    if left:
        told.append(
            f"{'1 case was' if left == 1 else f'{left} cases were'} left, see the verdict; the"
            " command runs all."
        )
    return joined(
        element("h3", "To repeat the run"),
        element("pre", "\n".join(lines)),
        [element("p", sentence) for sentence in told],
        element("p", "This report again: ", element("code", report.command)),
    )


def _in_any_clone(command: str, system: str) -> str:
    """ReFrame's command line with the clone's own ``reframe``, and the system in words."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if not words or PurePath(words[0]).name != "reframe":
        return command
    named = any(word.partition("=")[0] == "--system" for word in words)
    return shlex.join(["reframe", *([] if named else ["--system", system]), *words[1:]])


def _facts(several: Mapping[str, object]) -> Markup:
    return element(
        "dl",
        [[element("dt", name), element("dd", value)] for name, value in several.items()],
        class_="facts",
    )


def _partitions(report: Report) -> Markup:
    """What the session recorded of each partition; of one not measured, what the site says."""
    recorded = _recorded(report, "partition")
    rows, changed = [], []
    for name, one in report.judged.matrix.partitions.items():
        now = {title: _said(getattr(one, key)) for title, key in _OF_PARTITION.items()}
        if name not in recorded:
            rows.append(row(name, *now.values(), "the site's file: nothing was measured"))
            continue
        then = {title: _said(recorded[name][key]) for title, key in _OF_PARTITION.items()}
        rows.append(row(name, *then.values(), "the session"))
        changed += [
            f"{name}: {title}: {then[title]} when it was measured, {value} in the site's file now"
            for title, value in now.items()
            if value != then[title]
        ]
    return joined(
        element("h3", "The partitions, as configured"),
        table([row("partition", *_OF_PARTITION, "by", head=True)], rows),
        element("ul", [element("li", one) for one in changed]) if changed else None,
    )


def _environments(report: Report) -> Markup | None:
    """The MPI library of each environment that was measured, and what Spack built of it."""
    several = _recorded(report, "environment")
    if not several:
        return None
    rows = []
    for name, extras in several.items():
        packages = extras.get("built", {}).get("packages", {})
        stated = [f"{package} {one['version']} /{one['hash']}" for package, one in packages.items()]
        rows.append(row(name, extras["mpi"], "; ".join(stated) or "not built by Spack"))
    return joined(
        element("h3", "The environments, as measured"),
        table([row("environment", "MPI", "package, version and hash", head=True)], rows),
    )


def _recorded(report: Report, what: str) -> dict[str, dict[str, Any]]:
    """What the session kept of each ``partition`` or ``environment`` that it measured."""
    found: dict[str, dict[str, Any]] = {}
    for result in report.judged.session.results:
        if result.measured is not None:
            found.setdefault(getattr(result, what), result.measured[f"{what}_extras"])
    return found


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _software(found: OfSession) -> Markup | None:
    one = found.software
    if one is None:
        return None
    facts = {
        "netproof": one.netproof,
        "ReFrame": one.reframe,
        "Slurm": one.slurm or f"not known: {one.absent.get('slurm', 'no reason is given')}",
        "revision": one.git_revision
        or f"not known: {one.absent.get('git_revision', 'no reason is given')}",
    }
    files = [row(file.path, file.kind, file.sha256) for file in one.files]
    return joined(
        element("h3", "Software and files"),
        _facts(facts),
        element(
            "details",
            element("summary", f"Files of configuration and references: {len(files)}"),
            table([row("file", "kind", "SHA-256", head=True)], files),
        ),
    )


def _differences(found: OfSession) -> Markup | None:
    if not found.nodes:
        return None
    if not found.differences:
        return element("p", "All nodes of a partition are alike in all that was recorded.")
    return joined(
        element("h3", "In what nodes or jobs differ", id="nodes-differ"),
        element("ul", [element("li", one) for one in found.differences]),
    )


def _nodes(nodes: Sequence[NodeInJob]) -> Markup | None:
    """Each node of a partition once; where jobs found it changed, the differences say so."""
    if not nodes:
        return None
    once = {(one.partition, one.node.node): one for one in nodes}
    head = row(
        "node",
        "partition",
        "CPU",
        "kernel",
        "NIC",
        "driver",
        "firmware",
        "Mbit/s",
        "MTU",
        head=True,
    )
    rows, more = [], []
    for found in once.values():
        one = found.node
        stated = (one.cpu, one.kernel, one.nic, one.driver, one.firmware, one.link_mbit_s, one.mtu)
        rows.append(row(one.node, found.partition, *("–" if v is None else str(v) for v in stated)))
        several = {
            "offloads": one.offloads,
            "coalescing": one.coalescing,
            "sysctls": one.sysctls,
            "programs": one.programs,
        }
        more.append(
            element(
                "details",
                element("summary", f"{one.node}: offloads, coalescing, sysctls, programs"),
                _facts(
                    {
                        f"{group} {key}": value
                        for group, values in several.items()
                        for key, value in values.items()
                    }
                ),
            )
        )
    if len(more) > NODES_SHOWN:
        more = [element("details", element("summary", "Each node in full"), more)]
    return joined(element("h3", "Nodes"), table([head], rows), more)


def _unknown(found: OfSession) -> Markup | None:
    if not found.unknown:
        return None
    return element(
        "details",
        element("summary", f"What is not known: {len(found.unknown)}"),
        _facts(found.unknown),
        open=True if len(found.unknown) <= 4 else None,
    )
