"""Parts of the plots of docs/criteria/: recorded curves, charts of them, panels."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import altair as alt

from netproof.benchmarks import netpipe
from netproof.criteria import Bounds, Finding
from netproof.criteria.interface import CaseCurves, ComparedCases
from netproof.criteria.registry import BY_FINDING
from netproof.criteria.settings import Settings
from netproof.measurement.case import Curve

HERE = Path(__file__).resolve().parent
PASSES, FAILS, OTHER = "#2a7f62", "#c0392b", "#7f8c8d"
SHADES = {
    PASSES: (PASSES, "#58a68b", "#8fcab5"),
    FAILS: (FAILS, "#d9695e", "#eda59d"),
}


def recorded(name: str) -> Curve:
    """One recorded launch."""
    path = HERE / "curves" / f"{name}.np"
    return netpipe.read_file(path.read_text(), str(path), bidirectional=False).curve()


def launches(name: str) -> list[Curve]:
    """The recorded launches of a case, the curves NAME-1, NAME-2 and so on."""
    return [recorded(path.stem) for path in sorted((HERE / "curves").glob(f"{name}-[0-9].np"))]


def lines(curves: Mapping[str, Curve], colours: Iterable[str], *, rate: bool) -> alt.Chart:
    """Curves on logarithmic axes, time or bandwidth over size from 4 bytes up."""
    rows = [
        {"size": size, "value": value, "curve": label}
        for label, curve in curves.items()
        for size, value in zip(
            curve.sizes, (curve.bandwidth_mb_s if rate else curve.time_us) or (), strict=True
        )
        if size >= 4
    ]
    scale = alt.Scale(type="log", nice=False)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=alt.OverlayMarkDef(size=14))
        .encode(
            alt.X("size:Q", scale=scale, title="message size, bytes"),
            alt.Y("value:Q", scale=scale, title="bandwidth, MB/s" if rate else "time, µs"),
            alt.Color(
                "curve:N",
                title=None,
                scale=alt.Scale(domain=list(curves), range=list(colours)),
                legend=alt.Legend(orient="bottom", columns=1, labelLimit=400),
            ),
        )
    )


def marks(curve: Curve, findings: Iterable[Finding], *, rate: bool) -> alt.Chart:
    """Rings around the sizes that findings name."""
    values = (curve.bandwidth_mb_s if rate else curve.time_us) or ()
    at = dict(zip(curve.sizes, values, strict=True))
    rows = [{"size": f.size, "value": at[f.size]} for f in findings if f.size is not None]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_point(size=220, color="black", strokeWidth=1.5)
        .encode(alt.X("size:Q"), alt.Y("value:Q"))
    )


def level_line(value: float) -> alt.Chart:
    """A dashed horizontal at a value of the y axis."""
    return (
        alt.Chart(alt.Data(values=[{"value": value}]))
        .mark_rule(strokeDash=[5, 4], color=OTHER)
        .encode(alt.Y("value:Q"))
    )


def panel(chart: alt.Chart | alt.LayerChart, title: str, said: Iterable[str]) -> alt.LayerChart:
    """A chart of the common size under a title and findings' sentences."""
    wrapped = [line for sentence in said for line in textwrap.wrap(sentence, 72)]
    return alt.layer(chart).properties(
        width=400,
        height=260,
        title=alt.TitleParams(title, subtitle=wrapped, anchor="start", subtitleFontSize=10),
    )


def save(name: str, *panels: alt.LayerChart) -> None:
    """Panels side by side as an SVG next to this script."""
    alt.hconcat(*panels).resolve_scale(color="independent").save(str(HERE / f"{name}.svg"))


def found(
    name: str, case: CaseCurves | Sequence[Curve], where: str, bounds: Bounds | None = None
) -> tuple[Finding, ...]:
    """Return the findings of a criterion on a case or its launches, by these bounds or its own."""
    if not isinstance(case, CaseCurves):
        case = CaseCurves.of_launches(where, case)
    return BY_FINDING[name].on(case, _settings(name, bounds))


def compared(
    name: str, cases: Iterable[CaseCurves], bounds: Bounds | None = None
) -> dict[str, list[Finding]]:
    """Return the findings of a criterion that compares cases, by their labels."""
    several = ComparedCases({one.where: one for one in cases})
    settings = _settings(name, bounds)
    return {
        label: list(BY_FINDING[name].on(one, settings, several))
        for label, one in several.cases.items()
    }


def _settings(name: str, bounds: Bounds | None) -> Settings:
    own = {BY_FINDING[name].key: bounds} if bounds is not None else {}
    return dataclasses.replace(Settings(), **own)
