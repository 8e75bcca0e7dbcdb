"""Pages escape what they show, whatever it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from made_text import Outline

from netproof.present import html
from netproof.present.document import EVERY, Cell, DataTable, Headline, Sentences
from netproof.present.html.charts import ChartFigure
from netproof.present.html.folder import environment
from netproof.present.wording import file_name

HOSTILE = """</script><script>alert('x')</script>" onclick="y" & \u2028"""
LINK = Cell(HOSTILE, HOSTILE, link=HOSTILE)
CELL = Cell(HOSTILE, HOSTILE, [HOSTILE, LINK], HOSTILE, HOSTILE, [LINK])
TABLE = DataTable(
    [HOSTILE],
    [[CELL]],
    (),
    HOSTILE,
    groups={HOSTILE: 1},
    drawn=(HOSTILE, lambda room: [HOSTILE]),
    fold=HOSTILE,
)
FIGURE = ChartFigure(
    HOSTILE,
    None,
    {},
    HOSTILE,
    sentences=[HOSTILE, HOSTILE],
    hint=HOSTILE,
    notes=[HOSTILE],
    missing={HOSTILE: HOSTILE},
    table=TABLE,
)
TEMPLATES = sorted((Path(html.__file__).parent / "templates").glob("*.html"))


def made(source: str, **values: object) -> str:
    """A piece of a page by the macros of all pages."""
    importing = '{% import "macros.html" as page %}'
    return environment().from_string(importing + source).render(**values)


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ('<p title="{{ x }}">{{ x }}</p>', {}),
        *(
            ("{{ page.blocks([one]) }}", {"one": one})
            for one in (
                HOSTILE,
                {HOSTILE: HOSTILE},
                {HOSTILE: [HOSTILE]},
                Headline(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
                TABLE,
                CELL,
                [CELL],
                Cell(HOSTILE, "heading", name=HOSTILE),
                Cell(HOSTILE, "code"),
                Sentences([HOSTILE, CELL] * 30, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
                Sentences([CELL], HOSTILE, folded=True),
                FIGURE,
                [FIGURE],
            )
        ),
    ],
)
def test_text_is_text_wherever_it_stands(source, values):
    page = Outline(made(source, x=HOSTILE, **values))
    shown = HOSTILE.replace("\u2028", "\\u2028")
    assert shown in page.text
    assert "script" not in page.tags
    attributes = [given for _, given in page.elements]
    assert not [name for given in attributes for name in given if name.startswith("on")]
    for given in attributes:
        for value in given.values():
            assert HOSTILE[:9] not in (value or "") or shown in value


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_lets_text_through_or_leaves_an_attribute_unquoted(path):
    source = path.read_text()
    assert not re.findall(r"\|\s*safe\b|autoescape|~|Markup", source)
    assert not re.findall(r"=\s*\{\{", source)
    inside = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", source)
    assert not re.findall(r"<script>|\son\w+=|style=", inside)


CHARTS = (
    "{% for one in c %}{{ page.figure(one) }}{% endfor %}"
    '<script type="application/json">{{ chart_parts() }}</script>'
)


def drawn(*charts: ChartFigure) -> str:
    """A page of charts."""
    html.folder._parts.set({})
    return made(CHARTS, c=charts)


def test_no_text_ends_the_script_that_its_data_are_in(charts_of):
    rows = [{"size_bytes": at, "why": HOSTILE, "at": HOSTILE[:20]} for at in range(100)]
    chart = {"mark": HOSTILE[:20], "data": {"name": "points"}, "size_bytes why at": {}}
    page = drawn(ChartFigure("a", chart, {"points": rows}))
    assert HOSTILE[:20].count("<") == 2
    [found] = charts_of(page)
    assert found["mark"] == HOSTILE[:20]
    [curve] = found["datasets"]["points"]
    assert (curve["at"], curve["size_bytes"]) == (HOSTILE[:20], list(range(100)))
    assert curve["why"] == HOSTILE.replace("\u2028", "\\u2028")


def test_charts_of_a_page_share_what_they_have_in_common(charts_of):
    colour = {"field": "environment", "scale": {"range": ["var(--series-0)", "var(--series-1)"]}}
    rows = [{"size_bytes": at, "why": "a reason " * 10} for at in range(1000, 1038)]
    chart = {"layer": [{"data": {"name": "points"}, "color": colour}], "size_bytes why": 0}
    page = drawn(*(ChartFigure(name, chart, {"points": rows}) for name in "ab"))
    first, second = charts_of(page)
    assert (first.pop("description"), second.pop("description")) == ("a", "b")
    assert first == second
    assert first["layer"] == chart["layer"]
    assert first["datasets"]["points"][0]["size_bytes"][-1] == 1037
    for shared in ("var(--series-0)", "1037", "a reason a reason a reason a reason a reason a re"):
        assert page.count(shared) == 1


def test_the_first_cell_heads_its_row_and_numbers_are_marked():
    mixed = DataTable(("a", "b"), (("1", "2"),), (1,))
    for table, head, row in (
        (DataTable("ab", ["12"]), "<th>a<th>b", "<th>1<td>2"),
        (DataTable("ab", ["12"], EVERY), "<th n>a<th n>b", "<th>1<td>2"),
        (mixed, "<th>a<th n>b", "<th>1<td>2"),
        (DataTable("abc", ["123"], (1,)), "<th>a<th n>b<th>c", "<th>1<td n>2<td>3"),
    ):
        page = made("{{ page.data_table(t) }}", t=table)
        found = re.findall(r"<(t[hd])( scope=\"\w+\")?( class=\"n\")?>(\w)", page)
        short = ["".join(["<", tag, " n" if n else "", ">", text]) for tag, _, n, text in found]
        assert "".join(short) == head + row
    # The style of such tables has these cells on the right.
    for table, looks in ((mixed, "figures"), (DataTable("ab", ["12"], EVERY), "figures all")):
        box, inside, *_ = Outline(made("{{ page.data_table(t) }}", t=table)).elements
        assert (box[1]["class"], inside[1]["class"]) == ("scroll", looks)


def test_controls_are_shown_as_what_they_are_and_a_name_that_a_page_lacks_stops_it():
    assert made("<p>{{ x }}</p>", x="passed \u202e\x1b[31m\n") == "<p>passed \\u202e\\x1b[31m\n</p>"
    with pytest.raises(UndefinedError, match="'verdit' is undefined"):
        made("<p>{{ verdit }}</p>")


def test_a_file_name_leaves_no_folder_and_is_never_empty():
    assert file_name("IMB Reduce_scatter", "4 ranks") == "imb-reduce-scatter-4-ranks"
    assert file_name("../../etc/passwd") == "etc-passwd"
    assert file_name("<>") == "unnamed"
