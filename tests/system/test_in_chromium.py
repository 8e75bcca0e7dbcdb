"""A report in Debian's Chromium, driven by Playwright.

It is opened from disk, asks no network, is hovered, picked, printed, and read by axe.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from netproof.present.html.page import write
from netproof.present.html.report import Report

DATA = Path(__file__).resolve().parents[1] / "data"
HOSTILE = """<script>hostile=1</script>"><img src=x onerror=hostile=1>"""


PATIENCE_MS = 60_000
STATE = "document.documentElement.dataset.drawn"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, which ci/setup installs."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed: run ci/setup --test"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that notes its ``errors``, warnings included, and its ``requests``."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    page.errors, page.requests = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.on(
        "console",
        lambda message: (
            page.errors.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    yield page
    page.close()


def show(page: Page, path: Path, fragment: str = "", *, whole: bool = True) -> None:
    """Open a file; wait until the charts near the screen are drawn, or all if ``whole``."""
    page.goto("about:blank")
    page.goto(path.as_uri() + fragment)
    page.wait_for_function(f"['near', 'all'].includes({STATE})")
    if whole:
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.wait_for_function(f"{STATE} === 'all'")


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


TOOLTIP = "document.querySelector('#vg-tooltip-element.visible')"
POINTS = "[...document.querySelectorAll('.chart svg .mark-symbol.role-mark path')]"
DATUM = "e.__data__?.datum"


def center(page: Page, element: str) -> tuple[float, float]:
    """The middle of an element, scrolled into view."""
    box = page.evaluate(
        f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
        " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})()"
    )
    return box[0], box[1]


def hovered(page: Page, element: str) -> str:
    """Text of the tooltip on an element."""
    x, y = center(page, element)
    page.mouse.move(1, 1)
    page.mouse.move(x, y)
    page.wait_for_function(f"{TOOLTIP} !== null")
    return str(page.evaluate(f"{TOOLTIP}.innerText"))


def test_pages_open_from_disk_without_errors_or_network_or_serious_finding_of_axe(page, folder):
    for path in sorted(folder.glob("*.html")):
        show(page, path)
        assert page.errors == [], path.name
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        assert page.evaluate(CHARTS) == page.evaluate(
            "document.querySelectorAll('figure[data-drawn=yes] .chart svg').length"
        )
    for scheme, names in {
        "light": ("index", "imb-sendrecv", "netpipe"),
        "dark": ("index",),
    }.items():
        page.emulate_media(color_scheme=scheme)
        for name in names:
            show(page, folder / f"{name}.html")
            serious = [
                (one["id"], one["nodes"][0]["html"][:120])
                for one in Axe().run(page).response["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], name


DRAWN = "document.querySelectorAll('figure[data-drawn=yes]').length"
CHARTS = "document.querySelectorAll('.chart').length"


def test_charts_are_drawn_when_they_come_near_the_screen_when_idle_and_when_printed(
    page, folder, tmp_path
):
    show(page, folder / "netpipe.html", whole=False)
    page.wait_for_function(f"{DRAWN} === {CHARTS}")
    assert page.evaluate(STATE) == "all"
    # From here on the browser is never idle.
    page.add_init_script("window.requestIdleCallback = () => {}")
    show(page, folder / "netpipe.html", whole=False)
    assert 0 < page.evaluate(DRAWN) < page.evaluate(CHARTS)
    last = (
        "[...document.querySelectorAll('figure')].filter((f) => f.querySelector('.chart')).at(-1)"
    )
    assert page.evaluate(f"{last}.dataset.drawn") is None
    page.evaluate(f"{last}.scrollIntoView()")
    page.wait_for_function(
        f"{last}.dataset.drawn === 'yes' && {last}.querySelector('svg') !== null"
    )
    assert page.evaluate(DRAWN) < page.evaluate(CHARTS)
    show(page, folder / "index.html", whole=False)
    assert page.evaluate(DRAWN) < page.evaluate(CHARTS)
    page.pdf(path=tmp_path / "page.pdf", print_background=True)
    assert page.evaluate(DRAWN) == page.evaluate(CHARTS)
    text = subprocess.run(
        ["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    assert text.count("throughput each way, Mbit/s") == page.evaluate(
        "document.querySelectorAll('#netpipe figure svg').length"
    )
    assert page.errors == []


FADED = """[...document.querySelectorAll('figure')[0].querySelectorAll('.mark-line.role-mark path')]
    .map((path) => Number(path.getAttribute('opacity') ?? 1))"""


def test_hovering_shows_the_values_and_a_configuration_can_be_picked_and_put_back(page, folder):
    show(page, folder / "imb-sendrecv.html")
    shown = hovered(page, f"{POINTS}[0]")
    assert "gige mpich" in shown or "gige intelmpi" in shown
    for name in ("configuration", "message, bytes", "time, µs", "MAD over launches, µs", "MB/s"):
        assert name in shown

    def faded(count: int) -> None:
        page.wait_for_function(f"{FADED}.filter((opacity) => opacity === 0.12).length === {count}")

    choose = """(name) => {
        const list = document.querySelector('figure select');
        list.selectedIndex = [...list.options].findIndex((option) => option.text === name);
        list.dispatchEvent(new Event('input', {bubbles: true}));
        list.dispatchEvent(new Event('change', {bubbles: true}));
    }"""
    assert page.evaluate(FADED).count(1) == 4
    page.evaluate(f"({choose})('gige mpich')")
    faded(3)
    page.evaluate(f"({choose})('all of them')")
    faded(0)
    page.mouse.click(*center(page, f"{POINTS}[0]"))
    faded(3)
    picked = page.evaluate("document.querySelector('figure select').selectedOptions[0].text")
    assert picked != "all of them"


def test_hovering_shows_that_it_was_measured_again_and_in_which_launch(page, judge, tmp_path):
    write(Report(judge("sick.json", "testbed:gige")), tmp_path)
    show(page, tmp_path / "netpipe.html")
    figure = "document.querySelectorAll('figure')[0]"
    again = (
        f"[...{figure}.querySelectorAll('.mark-symbol.role-mark path')]"
        f".filter((e) => {DATUM}?.where && e.getAttribute('stroke'))"
    )
    count = page.evaluate(f"{figure}.chartView.data('measured again').length")
    assert page.evaluate(f"{again}.length") == count > 20
    size = "__data__.datum.size_bytes"
    shown = hovered(page, f"{again}.reduce((a, b) => (a.{size} < b.{size} ? a : b))")
    assert "measured again, launch" in shown
    assert "of 3" in shown
    assert "on gige-1, gige-2" in shown


def test_hostile_text_is_shown_and_does_nothing(page, folder):
    show(page, folder / "imb-sendrecv.html")
    options = page.evaluate(
        "[...document.querySelector('figure select').options].map((o) => o.text)"
    )
    assert f"{HOSTILE} mpich" in options
    shown = page.evaluate(
        "[...document.querySelectorAll('svg text')].map((text) => text.textContent)"
    )
    assert any(text.startswith("<script>hostile") for text in shown)
    hostile = f"{POINTS}.find((e) => {DATUM}?.partition?.startsWith('<script'))"
    assert HOSTILE in hovered(page, hostile)
    assert page.evaluate("typeof hostile") == "undefined"
    show(page, folder / "index.html")
    assert HOSTILE in page.evaluate("document.querySelector('header').innerText")
    assert page.evaluate("typeof hostile") == "undefined"
    assert page.errors == []


NEAREST = """Math.min(...[...document.querySelectorAll('.role-axis-label')].flatMap((axis) => {
    const boxes = [...axis.querySelectorAll('text')]
        .filter((text) => getComputedStyle(text).opacity !== '0')
        .map((text) => text.getBoundingClientRect());
    return boxes.slice(1).map((box, at) =>
        Math.max(box.left - boxes[at].right, boxes[at].top - box.bottom));
}))"""
"""Pixels between those two neighbouring labels of an axis that are nearest."""
FIRST_COLUMN = """Math.max(0, ...[...document.querySelectorAll('#matrix tbody tr:nth-child(2) th')]
    .map((cell) => cell.clientWidth))"""


def test_a_page_fits_telephone_dark_scheme_and_print_and_needs_no_colour(page, folder):
    page.set_viewport_size({"width": 390, "height": 900})
    for name in ("index.html", "netpipe.html", "imb-sendrecv.html"):
        show(page, folder / name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert page.evaluate(NEAREST) > 4, name
        assert page.evaluate(FIRST_COLUMN) < 190, name
    colours = """(() => [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.mark-line.role-mark path')).stroke])()"""
    light = page.evaluate(colours)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colours)
    assert light[0] == "rgb(255, 255, 255)"
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate(colours) == light
    dashes, shapes = page.evaluate(
        """(() => {
            const figure = document.querySelector('figure');
            const of = (marks, name) => [...figure.querySelectorAll(marks)]
                .map((path) => path.getAttribute(name));
            return [of('.mark-line.role-mark path', 'stroke-dasharray').filter(Boolean),
                    new Set(of('.mark-symbol.role-mark path', 'd')).size];
        })()"""
    )
    assert sorted(dashes) == ["1,0", "1,0", "2,2", "2,2"]
    assert shapes >= 2


WIDER = """[...document.querySelectorAll('#verdict .scroll, #landmarks .scroll')]
    .filter((box) => box.scrollWidth > box.clientWidth)"""


def test_wide_tables_fit_a_desk_s_screen_and_have_a_shadow_at_their_edge_elsewhere(
    page, judge, tmp_path
):
    write(Report(judge("two-switches.json")), tmp_path)
    for width, expected in ((1400, False), (420, True)):
        page.set_viewport_size({"width": width, "height": 900})
        show(page, tmp_path / "index.html", whole=False)
        assert (page.evaluate(f"{WIDER}.length") > 0) == expected, width
    attached = page.evaluate(f"getComputedStyle({WIDER}[0]).backgroundAttachment")
    assert attached == "local, local, scroll, scroll"


def test_without_its_scripts_a_page_says_where_the_data_is(page, folder, tmp_path):
    alone = tmp_path / "alone.html"
    alone.write_text((folder / "imb-sendrecv.html").read_text())
    page.goto(alone.as_uri())
    page.wait_for_function(
        "document.readyState === 'complete' && document.querySelector('.chart') !== null"
    )
    assert "its data is below" in page.evaluate("document.querySelector('.chart').innerText")
    assert page.evaluate("document.querySelector('figure details table tr td').textContent")
