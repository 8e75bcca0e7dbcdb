"""Differences between the nodes of two compared sides."""

from __future__ import annotations

from netproof.comparison.comparison import Comparison
from netproof.errors import NetproofError
from netproof.session import node_differences
from netproof.verdict import judging


def differing(compared: Comparison) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the properties in which the nodes of both sides differ, with the values of each.

    Raise NetproofError where a side's nodes are not known.
    """
    found = []
    for side in (compared.first, compared.second):
        of_sessions = [judging.provenance_of(one) for one in (side.session, *side.also)]
        here = [
            one
            for of_session in of_sessions
            for one in of_session.nodes
            if side.partition in (None, one.partition)
            and side.environment in (None, one.environment)
        ]
        if not here:
            reasons = [why for known in of_sessions for why in known.unknown.values()]
            why = "; ".join(dict.fromkeys(reasons)) or "no job of it said"
            raise NetproofError(f"what the nodes of {side.name} were is not known: {why}")
        found.append(here)
    return node_differences.between(*found)
