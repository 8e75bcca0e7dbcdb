"""The page on output files: the findings, and a chart of each kind."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from netproof.present import judged_files as pages
from netproof.present.html.folder import page_of
from netproof.verdict import files
from netproof.verdict.file_names import Sets

DATA = Path(__file__).parents[3] / "data"
IMB = DATA / "imb" / "2021.11" / "all.txt"
TCP = DATA / "netpipe" / "3.7.2" / "testbed-fast-ethernet.out"


def page(*paths: Path) -> str:
    return html.unescape(raw_page(*paths))


def raw_page(*paths: Path, named: Sets | None = None) -> str:
    judged = files.judge(paths, named=named)
    return page_of(pages.title(judged), [*pages.parts(judged, drawn=True)])


def test_a_yardstick_is_named_in_the_table_and_not_counted():
    sets = DATA / "public" / "complaints" / "sockets-0-bytes"
    named = Sets([sets / "4.0.3"], [sets / "3.0.0"])
    text = raw_page(*named.paths, named=named)
    assert "1 of 1 curves passed" in text
    assert text.count(">yardstick<") == 1


@pytest.mark.slow
def test_each_kind_has_a_section_and_what_has_no_size_no_chart():
    text = page(IMB)
    sections = re.findall(r'<section id="([^"]+)">', text)
    assert {"imb-pingpong-2-ranks", "imb-barrier-4-ranks"} <= set(sections)
    barrier = text.split('<section id="imb-barrier-4-ranks">')[1].split("</section>")[0]
    assert "There is no curve to draw." in barrier


def test_what_cannot_be_read_is_named_and_text_of_files_is_no_markup(tmp_path):
    name = tmp_path / "<b>no&output.txt"
    name.write_text("nothing\n")
    raw = raw_page(name, TCP)
    assert "<b>no&output" not in raw
    assert "&lt;b&gt;no&amp;output.txt" in raw
    assert "Not read" in raw
