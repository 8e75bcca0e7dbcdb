"""The last part of a report: how to repeat the run, and where it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netproof.provenance import NodeInJob, OfSession
from netproof.report.html import Markup, element, joined, row, table
from netproof.report.material import Report, stated

NODES_SHOWN = 8
"""How many nodes are there to be opened one by one before their list is to be opened too."""


def part(report: Report) -> Markup:
    """The commands that repeat the run, and all that is known of where it ran."""
    session, found = report.judged.session, report.provenance
    info = session.info
    revision = None
    parts: list[Markup | None] = []
    if found is None:
        parts.append(element("p", f"It cannot be told: {report.not_there['provenance']}"))
    elif found.software is not None:
        revision = found.software.git_revision
    command = info.get("cmdline")
    lines = [
        *([f"git checkout {revision}"] if revision else []),
        "ci/setup",
        ". ci/activate",
        command or "",
    ]
    told = []
    if not revision:
        told.append("The revision is not known: check out the one that was used yourself.")
    if found is not None and found.software is not None and found.software.git_changed:
        told.append("The checkout held changes that are in no revision.")
    if not command:
        told.append("The session does not state its command.")
    repeat = [
        element("h3", "To repeat the run"),
        element("pre", "\n".join(line for line in lines if line)),
        [element("p", sentence) for sentence in told],
        element("p", "This report again: ", element("code", report.command)),
    ]
    facts = _facts(
        {
            "session": str(session.path),
            "ReFrame": stated(info, "version"),
            "run in": stated(info, "workdir"),
            "by": stated(info, "user"),
        }
    )
    if found is not None:
        parts += [_software(found), _differences(found), _nodes(found.nodes), _unknown(found)]
    return joined(repeat, element("h3", "The session"), facts, _settings(report), parts)


def _facts(several: Mapping[str, object]) -> Markup:
    return element(
        "dl",
        [[element("dt", name), element("dd", value)] for name, value in several.items()],
        class_="facts",
    )


def _settings(report: Report) -> Markup:
    """What the configuration says of each partition."""
    rows = [
        row(
            name,
            one.switch,
            one.nic,
            one.driver,
            f"{one.link_mbit_s:g}",
            str(one.mtu),
            ", ".join(map(str, one.rank_counts)),
            str(one.ranks_per_node),
        )
        for name, one in report.judged.matrix.partitions.items()
    ]
    head = row(
        "partition", "switch", "NIC", "driver", "Mbit/s", "MTU", "ranks", "ranks a node", head=True
    )
    return joined(element("h3", "The partitions, as configured"), table([head], rows))


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
        element("h3", "In what nodes or jobs differ"),
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
