"""The page on a network under load: the factors in a table and in a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.experiments.load import Loaded, LoadFindings, Statistic
from netproof.present.html.charts import dots, tips, word
from netproof.present.html.html import answers_page, chart, file_name
from netproof.present.load import answer


def page(several: Sequence[tuple[Loaded, LoadFindings]], scripts: Sequence[str]) -> str:
    """Return the page on all load measurements of a report."""
    places = (f"{loaded.system}:{loaded.partition}" for loaded, _ in several)
    return answers_page("Under load", places, [_view(*one) for one in several], scripts)


def _view(loaded: Loaded, found: LoadFindings) -> dict[str, Any]:
    title = f"{loaded.system}:{loaded.partition} {loaded.environment}"
    rows = [
        {
            "what": f"{one.victim} alongside {one.aggressor}",
            "where": str(one.place),
            "value": factor.value,
            "low": factor.interval[0],
            "high": factor.interval[1],
        }
        for one in found.impacts
        if (factor := one.factors[Statistic.MEAN]).interval is not None
    ]
    return {
        **answer(loaded, found),
        "name": file_name(title),
        "title": title,
        "figures": [_chart(rows)] if rows else [],
        "by_size": None,
    }


def _chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    title = "Times as long as alone"
    number = ",.4~r"
    tooltip = tips(
        what="measured",
        where="where",
        value=("factor", number),
        low=("from", number),
        high=("to", number),
    )
    channels = {
        "y": word("what", sort=None, axis={"labelLimit": 300}),
        "yOffset": word("where"),
        "color": word("where", "where"),
    }
    made = dots(title, rows, "times as long as alone (mean)", tooltip, channels)
    caption = "A line is the 95 % interval over rounds; at 1 the network shows no impact."
    return chart(title, made, caption)
