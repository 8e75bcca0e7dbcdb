"""The chart of docs/validation/pair-rounds.md."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from ci.pair_power.portions import NODES, SLOWER, Portion
from ci.pair_power.rounds import ROUNDS, Fault


def chart(found: dict[str, dict[str, Any]], file: Path) -> None:
    """Draw the share of runs that named the one slow node, round by round."""
    points = [
        {
            "nodes": nodes,
            "noise": {"normal": "5 %, normal", "recorded": "recorded"}[which],
            "slower": f"{100 * share:.0f} %",
            "round": count,
            "named": sum(r is not None and r <= count for r in result["right"])
            / len(result["right"]),
        }
        for nodes, share, which in itertools.product(NODES, SLOWER, ("normal", "recorded"))
        if (result := found.get(Portion("random", nodes, Fault("node", 1, share), which, 0).name))
        for count in range(1, ROUNDS + 1)
    ]
    drawn = (
        alt.Chart(alt.InlineData(points), width=230, height=150)
        .mark_line(interpolate="step-after")
        .encode(
            alt.X("round:Q", title="rounds", scale=alt.Scale(domain=[1, ROUNDS])),
            alt.Y("named:Q", title="named, and nothing else", axis=alt.Axis(format="%")),
            alt.Color("slower:N", title="slower by", sort=[f"{100 * s:.0f} %" for s in SLOWER]),
            alt.StrokeDash("noise:N", title="noise"),
        )
        .facet(
            facet=alt.Facet("nodes:O", title="one slow node of", header=alt.Header(format=",")),
            columns=3,
        )
    )
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    specification = {**drawn.to_dict(validate=False), "background": "white"}
    file.write_text(vl_convert.vegalite_to_svg(specification, vl_version=version))
