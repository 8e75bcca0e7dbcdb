"""Last part of a report: how to repeat the run, and where it ran."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from netproof.errors import NetproofError
from netproof.present.document import Block, Cell, DataTable, Sentences
from netproof.present.html.report import Report
from netproof.present.wording import counted
from netproof.session.node_facts import Node
from netproof.session.provenance import KIND_CONFIGURATION, KIND_REFERENCES, Software
from netproof.verdict import session_verdict
from netproof.verdict.explain import listed

TESTBED = "testbed"
"""The system that ci/testbed builds; ci/setup prepares its machine, and needs root for that."""

_FOLDERS = {
    KIND_CONFIGURATION: ("RFM_CONFIG_PATH", "site-config"),
    KIND_REFERENCES: ("RFM_REFERENCE_PREFIX", "reference-values"),
}
"""Folders of each kind of file: the variable, and its value after ``. ci/activate``."""

_LINK = {"NIC": "nic", "driver": "driver", "Mbit/s": "link_mbit_s", "MTU": "mtu"}
_RANKS = {"ranks": "rank_counts", "ranks a node": "ranks_per_node"}
_OF_PARTITION = {"switch": "switch", **_LINK, **_RANKS}
"""Columns of the table of partitions, and the site's keys."""
_OF_NODE = {
    **{"CPU": "cpu", "kernel": "kernel", "NIC": "nic", "driver": "driver"},
    **{"firmware": "firmware", "Mbit/s": "link_mbit_s", "MTU": "mtu"},
}
"""Columns of the table of nodes, and their fields."""
_IN_FULL = ("offloads", "coalescing", "sysctls", "programs")


def blocks(report: Report) -> Iterator[Block]:
    """Yield the commands that repeat the run, and all that is known of where it ran."""
    session, found, why = report.judged.session, None, ""
    try:
        found = session_verdict.provenance_of(session)
    except NetproofError as error:
        why = str(error)
    commands, cautions = _repeat(report, None if found is None else found.software)
    yield Cell("To repeat the run", "heading")
    yield Cell("\n".join(commands), "code")
    yield from cautions
    yield {"This report again": report.command}
    yield Cell("The session", "heading")
    keys = {"ReFrame": "version", "command": "cmdline", "run in": "workdir", "by": "user"}
    facts = {name: stated(session.info, key) for name, key in keys.items()}
    yield {"session": session.path, **facts}
    yield Sentences(_changed(report), "What the site's file says otherwise now")
    built = []
    for name, extras in _recorded(report, "environment").items():
        packages = extras.get("built", {}).get("packages", {})
        named = [f"{package} {one['version']} /{one['hash']}" for package, one in packages.items()]
        built.append((name, extras["mpi"], "; ".join(named) or "not built by Spack"))
    if built:
        yield Cell("The environments, as measured", "heading")
        yield DataTable(("environment", "MPI", "package, version and hash"), built)
    if found is None:
        yield f"Software and nodes are not known: {why}"
        return
    if found.software is not None:
        yield Cell("Software and files", "heading")
        yield from _software(found.software)
    # Each node of a partition once; where jobs found changes, the differences say so.
    nodes = {(one.partition, one.node.node): one.node for one in found.nodes}
    if nodes:
        if found.differences:
            yield Sentences(found.differences, "How nodes or jobs differ", name="nodes-differ")
        else:
            yield "All nodes of a partition are alike in all that was recorded."
        yield Cell("Nodes", "heading")
        yield from _nodes(nodes)
    unknown = [f"{what}: {reason}" for what, reason in found.unknown.items()]
    yield Sentences(unknown, f"What is not known: {len(unknown)}", folded=True)


def stated(info: Mapping[str, Any], key: str) -> str:
    """Return ReFrame's value of the session under a key, or that it has none."""
    value = info.get(key)
    return f"(the session does not state {key})" if value in (None, "") else str(value)


def _repeat(report: Report, software: Software | None) -> tuple[list[str], list[str]]:
    """Return the commands to repeat the run in a clone, and in what it would differ."""
    info, cautions = report.judged.session.info, []
    lines = ["python3 -m venv .venv && .venv/bin/pip install --editable .", ". ci/activate"]
    if report.system == TESTBED:
        lines = ["ci/setup", "ci/testbed/testbed up", ". ci/testbed/activate"]
    if software is not None and software.git_revision:
        lines.insert(0, f"git checkout {shlex.quote(software.git_revision)}")
    else:
        cautions.append("The revision is not known: check out the one that was used yourself.")
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
    if left := len(report.judged.verdict.skipped):
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


def tested(report: Report) -> DataTable:
    """Return each partition's switch, card, link and libraries, and what became of its cases.

    They are as the session recorded them, or the site's for a partition that was not measured.
    """
    recorded = _recorded(report, "partition")
    libraries: dict[str, dict[str, None]] = defaultdict(dict)
    for result in report.judged.session.results:
        if result.measured is not None:
            libraries[result.partition][result.extras["environment_extras"]["mpi"]] = None
    states: dict[str, Counter[str]] = defaultdict(Counter)
    for one in report.judged.verdict.cases:
        word = "did not run" if not one.ran else "failed" if one.failed else ""
        states[one.case.partition][word or ("passed" if one.passed else "inconclusive")] += 1
    rows: list[list[str | Cell]] = []
    unmeasured = "nothing was measured; this is the site's file"
    for name, site in report.judged.matrix.partitions.items():
        then = recorded.get(name)
        keys = _OF_PARTITION.values()
        values = [_said(getattr(site, key) if then is None else then[key]) for key in keys]
        words = ("passed", "failed", "inconclusive", "did not run")
        cases = ", ".join(f"{states[name][word]} {word}" for word in words if states[name][word])
        first = Cell(name, link=report.partition_pages.get(name, ""))
        rows.append([first, *values, ", ".join(libraries[name]) or unmeasured, cases])
    return DataTable(("partition", *_OF_PARTITION, "libraries", "cases"), rows)


def _changed(report: Report) -> list[str]:
    """Return what the site's file says otherwise now than when a partition was measured."""
    now = report.judged.matrix.partitions
    return [
        f"{name}: {title}: {_said(then[key])} when it was measured,"
        f" {_said(getattr(now[name], key))} in the site's file now"
        for name, then in _recorded(report, "partition").items()
        for title, key in _OF_PARTITION.items()
        if name in now and _said(getattr(now[name], key)) != _said(then[key])
    ]


def _recorded(report: Report, what: str) -> dict[str, dict[str, Any]]:
    """Return the session's record of each measured ``partition`` or ``environment``."""
    found: dict[str, dict[str, Any]] = {}
    for result in report.judged.session.results:
        if result.measured is not None:
            found.setdefault(getattr(result, what), result.extras[f"{what}_extras"])
    return found


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _software(one: Software) -> Iterator[Block]:
    """Yield versions, and files of configuration and references."""

    def known(value: str | None, key: str) -> str:
        return value or f"not known: {one.absent.get(key, 'no reason is given')}"

    yield {
        "netproof": one.netproof,
        "ReFrame": one.reframe,
        "Slurm": known(one.slurm, "slurm"),
        "revision": known(one.git_revision, "git_revision"),
    }
    files = [(file.path, file.kind, file.sha256) for file in one.files]
    fold = "Files of configuration and references"
    yield DataTable(("file", "kind", "SHA-256"), files, fold=fold)


def _nodes(nodes: Mapping[tuple[str, str], Node]) -> Iterator[Block]:
    """Yield a row for each node, by partition and name; settings in full of those alike at once."""
    rows = []
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for (partition, name), node in nodes.items():
        values = (getattr(node, field) for field in _OF_NODE.values())
        rows.append((name, partition, *("–" if one is None else str(one) for one in values)))
        settings = (
            (f"{group} {key}", str(value))
            for group in _IN_FULL
            for key, value in getattr(node, group).items()
        )
        alike[tuple(settings)].append(name)
    yield DataTable(("node", "partition", *_OF_NODE), rows)
    for shared, names in alike.items():
        fold = f"{listed(names)}: offloads, coalescing, sysctls, programs"
        yield DataTable(("setting", "value"), shared, fold=fold)
