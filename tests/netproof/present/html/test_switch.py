"""The page on one switch: against each other one, where it breaks down, plots of only that."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_calls import in_words
from made_reports import altered, another

from netproof.diagnosis.diagnosis import ingest
from netproof.store import Store

ROOT = Path(__file__).resolve().parents[4]
BOTH = ROOT / "tests" / "data" / "sessions" / "two-switches.json"


pytestmark = pytest.mark.usefixtures("project")


def one_switch(tmp_path: Path, partition: str, number: int) -> Path:
    """The recorded run as if only one of its switches had been measured."""

    def change(document):
        run = document["runs"][0]
        run["testcases"] = [test for test in run["testcases"] if test["partition"] == partition]
        run["num_cases"] = len(run["testcases"])
        another(document, number)

    return altered(tmp_path, change, "two-switches", f"{partition}.json")


@pytest.fixture
def stored(tmp_path) -> tuple[Path, Path]:
    """The new switch's report, and a store that has the other one."""
    store = Store.create(tmp_path / "store")
    ingest(store, one_switch(tmp_path, "gige", 1))
    return one_switch(tmp_path, "fast-ethernet", 2), store.folder


def written(tmp_path: Path, *arguments: str) -> dict[str, str]:
    folder = tmp_path / "report"
    assert in_words("report", *arguments, "--to", folder) == (0, f"report {folder}/index.html")
    return {path.name: path.read_text() for path in folder.glob("*.html")}


def charts(page: str) -> list[str]:
    return re.findall(r"<h3>([^<]*): time against message size</h3>", page)


@pytest.mark.slow
def test_a_switch_measured_alone_has_a_page_against_those_of_the_store(tmp_path, stored):
    new, store = stored
    alongside = (str(new), "testbed:fast-ethernet", "--store", str(store), "--with-stored")
    pages = written(tmp_path, *alongside)
    main, page = pages["index.html"], pages["switch-fast-ethernet.html"]
    assert 'href="switch-fast-ethernet.html"' in main
    assert re.search(r"▼ Slower</strong><span>fast-ethernet against gige, of \d{4}-\d\d-\d\d", page)
    assert "not red up to 4 ranks" in page
    assert "did not run at 2 and 4 ranks" in page
    # What is stored is greyed with its day in matrix and charts.
    assert re.search(r'<th scope="rowgroup" colspan="\d">gige, of \d{4}-\d\d-\d\d</th>', main)
    chart = r'"configuration":"gige mpich, of \d{4}-\d\d-\d\d"'
    assert re.search(chart, pages["imb-sendrecv.html"])
    assert "Compared with" in main
    # What speaks against comparing is on both pages.
    document = json.loads(new.read_text())
    document["session_info"]["time_start_unix"] += 3 * 86400
    new.write_text(json.dumps(document))
    pages = written(tmp_path, *alongside, "--max-age", "0")
    assert "(3 days before): 5 cases of session" in pages["switch-fast-ethernet.html"]
    for name in ("switch-fast-ethernet.html", "index.html"):
        assert "3 days older, and 0 are allowed" in pages[name]


@pytest.mark.slow
def test_only_what_is_red_or_slower_is_plotted(tmp_path):
    pages = written(tmp_path, str(BOTH), "testbed", "--switch", "fast-ethernet")
    slower = charts(pages["switch-fast-ethernet.html"])
    assert "IMB Sendrecv 2 ranks" in slower
    assert not any("Barrier" in title for title in slower)
    pages = written(tmp_path, str(BOTH), "testbed", "--switch", "gige")
    assert "IMB Sendrecv 2 ranks" not in charts(pages["switch-gige.html"])


@pytest.mark.slow
def test_without_others_there_is_no_page_and_one_that_was_asked_for_is_refused(tmp_path, stored):
    new, _ = stored
    arguments = [str(new), "testbed:fast-ethernet"]
    assert not [name for name in written(tmp_path, *arguments) if name.startswith("switch")]
    out = ["--to", str(tmp_path / "other")]
    for switch, reason in (
        ("fast-ethernet", "is the only partition, so there is no other to compare it with"),
        ("nexus", "has no case of partition 'nexus'; it has fast-ethernet"),
    ):
        status, said = in_words("report", *arguments, *out, "--switch", switch)
        assert (status, reason in said) == (2, True)
