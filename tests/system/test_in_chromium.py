"""A report in a browser: opened from disk, asking no network, hovered, picked, printed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from netproof.present.html.folder import write
from netproof.present.html.report import Report

DATA = Path(__file__).resolve().parents[1] / "data"
HOSTILE = """<script>hostile=1</script>"><img src=x onerror=hostile=1>"""


@pytest.fixture(scope="module")
def folder(judge, tmp_path_factory) -> Path:
    """The report on a session in which a switch, a host and a reason are hostile text."""
    text = (DATA / "sessions" / "two-switches.json").read_text()
    document = json.loads(text.replace("fast-ethernet", json.dumps(HOSTILE)[1:-1]))
    document["session_info"]["hostname"] = HOSTILE
    session = tmp_path_factory.mktemp("session") / "run-1.json"
    session.write_text(json.dumps(document))
    target = tmp_path_factory.mktemp("report")
    write(Report(judge(session), ("html", "csv"), switch="gige"), target)
    return target


@pytest.fixture
def page(browser):
    page = browser.page()
    page.look(width=1280)
    return page


def _center(page, selector: str) -> tuple[float, float]:
    """The middle of an element, scrolled into view."""
    box = page.value(
        f"(() => {{ const e = {selector}; e.scrollIntoView({{block: 'center'}});"
        " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})()"
    )
    return box[0], box[1]


def test_pages_open_from_disk_without_errors_or_network(page, folder):
    for path in sorted(folder.glob("*.html")):
        page.open(path)
        assert page.errors == [], path.name
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        assert page.value("document.querySelectorAll('.chart').length") == page.value(
            "document.querySelectorAll('figure[data-drawn=yes] .chart svg').length"
        )


DRAWN = "document.querySelectorAll('figure[data-drawn=yes]').length"
CHARTS = "document.querySelectorAll('.chart').length"


@pytest.fixture
def busy(page):
    """The page in a browser that is never idle."""
    never = "window.requestIdleCallback = () => {}"
    page.send("Page.addScriptToEvaluateOnNewDocument", source=never)
    return page


def test_charts_are_drawn_when_they_come_near_the_screen(busy, folder):
    page = busy
    page.open(folder / "netpipe.html", whole=False)
    assert 0 < page.value(DRAWN) < page.value(CHARTS)
    last = (
        "[...document.querySelectorAll('figure')].filter((f) => f.querySelector('.chart')).at(-1)"
    )
    assert page.value(f"{last}.dataset.drawn") is None
    page.value(f"{last}.scrollIntoView()")
    page.until(f"{last}.dataset.drawn === 'yes' && {last}.querySelector('svg') !== null")
    assert page.value(DRAWN) < page.value(CHARTS)
    assert page.errors == []


def test_charts_that_never_come_near_are_drawn_when_the_browser_is_idle(page, folder):
    page.open(folder / "netpipe.html", whole=False)
    page.until(f"{DRAWN} === {CHARTS}")
    assert page.value("document.documentElement.dataset.drawn") == "all"


def test_charts_that_were_never_near_are_printed_too(busy, folder, tmp_path):
    page = busy
    page.open(folder / "index.html", whole=False)
    assert page.value(DRAWN) < page.value(CHARTS)
    page.print(tmp_path / "page.pdf")
    assert page.value(DRAWN) == page.value(CHARTS)
    text = subprocess.run(
        ["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    assert text.count("throughput each way, Mbit/s") == page.value(
        "document.querySelectorAll('#netpipe figure svg').length"
    )


def test_links_of_the_main_page_resolve(page, folder):
    page.open(folder / "index.html")
    links = page.value(
        "[...new Set([...document.querySelectorAll('a')].map((a) => a.getAttribute('href')))]"
    )
    assert len(links) > 20
    for link in links:
        file = link.partition("#")[0]
        assert (folder / (file or "index.html")).is_file(), link
    page.open(folder / "netpipe.html", "#netpipe-tcp-inter-node-one-way")
    assert page.value("document.querySelector(':target').tagName") == "SECTION"
    charts = page.value(
        "[...document.querySelectorAll('a[href^=charts]')].map((a) => a.getAttribute('href'))"
    )
    assert charts
    assert all((folder / link).is_file() for link in charts)


def test_hovering_tells_the_values(page, folder):
    page.open(folder / "imb-sendrecv.html")
    x, y = _center(page, "document.querySelector('.chart svg .mark-symbol.role-mark path')")
    page.mouse("mouseMoved", 1, 1)
    page.mouse("mouseMoved", x, y)
    page.until("document.querySelector('#vg-tooltip-element.visible') !== null")
    told = page.value("document.querySelector('#vg-tooltip-element').innerText")
    assert "gige mpich" in told or "gige intelmpi" in told
    for name in ("configuration", "message, bytes", "time, µs", "MAD over launches, µs", "MB/s"):
        assert name in told


def test_hovering_tells_that_it_was_measured_again_and_in_which_launch(page, judge, tmp_path):
    write(Report(judge("sick.json", "testbed:gige")), tmp_path)
    page.open(tmp_path / "netpipe.html")
    rows = "figure.chartView.data('measured again')"
    marks = "document.querySelectorAll('figure')[0]"
    count = page.value(f"((figure) => {rows}.length)({marks})")
    drawn = page.value(
        f"[...{marks}.querySelectorAll('.mark-symbol.role-mark path')]"
        ".filter((e) => e.__data__?.datum?.where && e.getAttribute('stroke')).length"
    )
    assert drawn == count > 20
    x, y = _center(
        page,
        f"[...{marks}.querySelectorAll('.mark-symbol.role-mark path')]"
        ".filter((e) => e.__data__?.datum?.where)"
        ".reduce((a, b) => (a.__data__.datum.size_bytes < b.__data__.datum.size_bytes ? a : b))",
    )
    page.mouse("mouseMoved", 1, 1)
    page.mouse("mouseMoved", x, y)
    page.until("document.querySelector('#vg-tooltip-element.visible') !== null")
    told = page.value("document.querySelector('#vg-tooltip-element').innerText")
    assert "measured again, launch" in told
    assert "of 3" in told
    assert "on gige-1, gige-2" in told


FADED = """[...document.querySelectorAll('figure')[0].querySelectorAll('.mark-line.role-mark path')]
    .map((path) => Number(path.getAttribute('opacity') ?? 1))"""


def test_a_configuration_can_be_picked_from_the_list_and_put_back(page, folder):
    page.open(folder / "imb-sendrecv.html")
    choose = """(name) => {
        const list = document.querySelector('figure select');
        list.selectedIndex = [...list.options].findIndex((option) => option.text === name);
        list.dispatchEvent(new Event('input', {bubbles: true}));
        list.dispatchEvent(new Event('change', {bubbles: true}));
    }"""
    everyone = page.value(FADED)
    assert everyone.count(1) == 4
    page.value(f"({choose})('gige mpich')")
    page.until(f"{FADED}.filter((opacity) => opacity === 0.12).length === 3")
    page.value(f"({choose})('all of them')")
    page.until(f"{FADED}.filter((opacity) => opacity === 0.12).length === 0")


def test_a_configuration_can_be_picked_by_clicking_its_curve(page, folder):
    page.open(folder / "imb-sendrecv.html")
    x, y = _center(page, "document.querySelector('.chart svg .mark-symbol.role-mark path')")
    page.click(x, y)
    page.until(f"{FADED}.filter((opacity) => opacity === 0.12).length === 3")
    picked = page.value("document.querySelector('figure select').selectedOptions[0].text")
    assert picked != "all of them"


def test_hostile_text_is_shown_and_does_nothing(page, folder):
    page.open(folder / "imb-sendrecv.html")
    options = page.value("[...document.querySelector('figure select').options].map((o) => o.text)")
    assert f"{HOSTILE} mpich" in options
    shown = page.value("[...document.querySelectorAll('svg text')].map((text) => text.textContent)")
    assert any(text.startswith("<script>hostile") for text in shown)
    points = "[...document.querySelectorAll('.chart svg .mark-symbol.role-mark path')]"
    hostile = f"{points}.find((e) => e.__data__?.datum?.partition?.startsWith('<script'))"
    x, y = _center(page, hostile)
    page.mouse("mouseMoved", 1, 1)
    page.mouse("mouseMoved", x, y)
    page.until("document.querySelector('#vg-tooltip-element.visible') !== null")
    assert HOSTILE in page.value("document.querySelector('#vg-tooltip-element').innerText")
    assert page.value("typeof hostile") == "undefined"
    page.open(folder / "index.html")
    assert HOSTILE in page.value("document.querySelector('header').innerText")
    assert page.value("typeof hostile") == "undefined"
    assert page.errors == []


def test_dark_scheme_changes_page_and_charts(page, folder):
    colours = """(() => [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.mark-line.role-mark path')).stroke])()"""
    page.open(folder / "imb-sendrecv.html")
    light = page.value(colours)
    page.look(width=1280, dark=True)
    dark = page.value(colours)
    assert light[0] == "rgb(255, 255, 255)"
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    page.look(width=1280, dark=True, media="print")
    assert page.value(colours) == light


def test_nothing_is_wider_than_a_telephone(page, folder):
    page.look(width=390)
    for name in ("index.html", "imb-sendrecv.html", "netpipe.html"):
        page.open(folder / name)
        assert page.value("document.documentElement.scrollWidth") <= 390, name


def test_charts_are_told_apart_without_colour(page, folder):
    page.open(folder / "imb-sendrecv.html")
    looks = page.value(
        """(() => {
            const figure = document.querySelector('figure');
            const of = (marks, name) => [...figure.querySelectorAll(marks)]
                .map((path) => path.getAttribute(name));
            return [of('.mark-line.role-mark path', 'stroke-dasharray').filter(Boolean),
                    new Set(of('.mark-symbol.role-mark path', 'd')).size];
        })()"""
    )
    assert sorted(looks[0]) == ["1,0", "1,0", "2,2", "2,2"]
    assert looks[1] >= 2


def test_without_its_scripts_a_page_says_where_the_data_is(page, folder, tmp_path):
    text = (folder / "imb-sendrecv.html").read_text()
    alone = tmp_path / "alone.html"
    alone.write_text(text)
    page.send("Page.navigate", url=alone.as_uri())
    page.until("document.readyState === 'complete' && document.querySelector('.chart') !== null")
    assert "its data is below" in page.value("document.querySelector('.chart').innerText")
    assert page.value("document.querySelector('figure details table tr td').textContent")
