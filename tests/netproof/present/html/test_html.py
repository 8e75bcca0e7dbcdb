"""Pages escape what they show, whatever it is."""

from __future__ import annotations

import json

from netproof.present.html.html import Markup, element, file_name, joined, row, script_json

HOSTILE = """</script><script>alert('x')</script>" onclick="y" & \u2028"""


def test_text_is_text_wherever_it_stands():
    made = element("p", HOSTILE, title=HOSTILE)
    assert "<script" not in made
    assert made.count('"') == 2
    assert "&lt;/script&gt;&lt;script&gt;alert(&#x27;x&#x27;)" in made


def test_controls_are_shown_as_what_they_are():
    assert element("p", "passed \u202e\x1b[31m\n") == "<p>passed \\u202e\\x1b[31m\n</p>"


def test_only_what_an_element_made_is_markup():
    assert joined("<b>", element("i", "<u>"), None, ["&", 1]) == "&lt;b&gt;<i>&lt;u&gt;</i>&amp;1"
    assert isinstance(element("i"), Markup)
    assert not isinstance(element("i") + "<b>", Markup)


def test_no_text_ends_the_script_that_its_data_are_in():
    made = script_json({HOSTILE: [HOSTILE]})
    inside = made.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert "<" not in inside
    assert json.loads(inside) == {HOSTILE: [HOSTILE]}


def test_an_attribute_without_a_value_is_left_out_or_bare():
    assert element("details", open=None) == "<details></details>"
    assert element("details", open=True) == "<details open></details>"
    assert element("td", class_="n") == '<td class="n"></td>'


def test_the_first_cell_heads_its_row():
    assert row("a", "1", numbers_from=1) == '<tr><th scope="row">a</th><td class="n">1</td></tr>'
    assert row("a", head=True) == '<tr><th scope="col">a</th></tr>'


def test_a_file_name_leaves_no_folder_and_is_never_empty():
    assert file_name("IMB Reduce_scatter", "4 ranks") == "imb-reduce-scatter-4-ranks"
    assert file_name("../../etc/passwd") == "etc-passwd"
    assert file_name("<>") == "unnamed"
