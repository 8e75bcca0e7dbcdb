"""The pages and files of a report: whole, in order, escaped, with every link leading somewhere."""

from __future__ import annotations

import csv
import functools
import json
import re
from pathlib import Path

import pytest
from made_calls import in_words
from made_reports import altered
from made_text import Outline

from netproof.present.html.charts import ChartFigure, ticks
from netproof.present.html.page import pages as pages_of
from netproof.present.html.page import write
from netproof.present.html.report import Report, _in_any_clone
from netproof.session import provenance
from netproof.session.provenance import Provenance

DATA = Path(__file__).resolve().parents[3] / "data"
BOTH = "two-switches"


@pytest.fixture(scope="session")
def report(judge):
    """Return the pages of a session, by file: ``report(session, system)``."""

    @functools.cache
    def pages(session: str | Path, system: str | None = None) -> dict[str, Outline]:
        made = pages_of(Report(judge(session, system)))
        return {name: Outline(page) for name, page in made}

    return pages


def _figure(made, name):
    return made.figure(next(group for group in made.groups if group.name == name))


def recorded_provenance(revision: str) -> dict:
    """Return a job's record of four differing nodes of the testbed, with a revision."""
    software = Provenance(
        netproof="0.1.0",
        reframe="4.10.4",
        slurm="slurm 22.05.8",
        git_revision=revision,
        git_changed=True,
        files={"configuration": {f"/srv/{revision}.py": "0" * 64}},
        nodes=(),
    )
    nodes = [f"gige-{number}" for number in range(1, 5)]
    return provenance.of_job(DATA / "nodes" / "differ", nodes, software)


@pytest.mark.slow
def test_the_main_page_answers_in_the_order_that_a_reader_asks(report):
    main = report("two-switches.json")["index.html"]
    assert main.headings == [
        "Verdict",
        "Matrix",
        "NetPIPE",
        "Landmarks",
        "Provenance, and how to repeat it",
    ]
    assert "Would have failed: twice the latency in " in main.text
    assert (
        "Notes the site's own bounds on gige: curves from 4096 bytes (default 4); inver"
        in main.text
    )
    order = [
        "22 of 104 cases passed, 2 inconclusive, 80 did not run.",
        "What failed or did not run",
        "What is inconclusive",
        "Notes",
    ]
    places = [main.text.index(sentence) for sentence in order]
    assert places == sorted(places)


@pytest.mark.slow
def test_every_function_has_a_page_and_every_chart_its_data_as_a_table(judge):
    made = Report(judge("two-switches.json"))
    pages = dict(pages_of(made))
    assert {"imb-sendrecv.html", "imb-barrier.html", "netpipe.html"} <= set(pages)
    for page in pages.values():
        for figure in re.findall("<figure>.*?</figure>", page, re.DOTALL):
            drawn = 'class="chart"' in figure
            assert drawn == ('type="application/json"' in figure)
            assert ("The data as a table" in figure) == (drawn and "signature" not in figure)
            assert drawn or "There is no curve to draw." in figure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("session", "page", "patterns"),
    [
        ("sick.json", "index.html", ["no score", "did not run them"]),
        # What was measured again stands below its chart.
        (
            "sick.json",
            "netpipe.html",
            [
                r"measured again in job \d+ on gige-1, gige-2",
                "again 3, µs",
                r"flagged: 49,152 \d+\.\d",
            ],
        ),
        (
            "two-switches.json",
            "index.html",
            [
                "The revision is not known, so the commands may run another one.",
                "What is not known: 2 software: no job of the report says what it ran with,",
                "Compared with earlier studies",
            ],
        ),
        (
            "two-switches.json",
            "studies.html",
            [
                # Studies stand alongside the session, with reasons for what is absent.
                "Network Performance Evaluation on an IBM e325 Opteron Cluster",
                "What the study has",
                "gige mpich intra-node oneway: |NetPIPE mpi intra-node oneway: the session",
                # The e325 report's Myrinet, and the session's own fast Ethernet.
                "1876",
                "between nodes fast-ethernet mpich",
            ],
        ),
        (
            "passed.json",
            "index.html",
            ["libraries Intel MPI 2021.18.1 nothing was measured; this is the site's file"],
        ),
        # The fastest rank and the mean stand with the data.
        (
            "ranges.json",
            "imb-allreduce.html",
            [
                r"the slowest rank's time \(the fastest rank's, the mean of the ranks\)",
                r"524,288 [\d.e+]+ ± [\d.e+]+ \([\d.e+]+, [\d.e+]+\)",
            ],
        ),
    ],
)
def test_a_page_says_what_is_known_and_what_is_not(report, session, page, patterns):
    system = None if session in ("two-switches.json", "passed.json") else "testbed:gige"
    text = report(session, system)[page].text
    for pattern in patterns:
        assert re.search(pattern, text), pattern
    # Large numbers are written out.
    assert page != "imb-allreduce.html" or not re.search(r"\de\+", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("session", "system"),
    [
        ("two-switches.json", None),
        ("sick.json", "testbed:gige"),
    ],
)
def test_every_link_leads_somewhere(report, session, system):
    pages = report(session, system)
    for name, page in pages.items():
        ids = page.values("id")
        assert len(ids) == len(set(ids)), name
        for link in page.values("href", "src"):
            file, _, fragment = link.partition("#")
            if file.startswith(("assets/", "data:")):
                continue
            assert (file or name) in pages, (name, link)
            assert not fragment or fragment in pages[file or name].values("id"), (name, link)


def with_provenance(document: dict) -> None:
    document["runs"][0]["testcases"][0]["netproof_provenance"] = recorded_provenance("4f5a0c")


@pytest.mark.slow
def test_provenance_names_what_nodes_differ_in_and_how_to_repeat_the_run(report, tmp_path):
    main = report(altered(tmp_path, with_provenance, BOTH))["index.html"].text
    for sentence in (
        "To repeat the run git checkout 4f5a0c ci/setup ci/testbed/testbed up . ci/testbed/activate"
        " export RFM_CONFIG_PATH=/srv reframe --system testbed -c checks -r",
        "command /srv/netproof/.venv/bin/reframe --system testbed -c checks -r",
        "The checkout held changes that are in no revision.",
        "How nodes or jobs differ",
        "/srv/4f5a0c.py",
    ):
        assert sentence in main
    verdict = main[: main.index("Score against")]
    assert "gige: gige-2: MTU 1400, 3 others 1500, as the site's file says" in verdict
    assert "coverage: gige: " in verdict


def test_the_command_repeats_the_run_in_any_clone():
    for command, repeated in (
        ("/a/.venv/bin/reframe -c checks -r", "reframe --system testbed -c checks -r"),
        ("/a/reframe --system=b:c -n 'Imb.*k=2' -r", "reframe --system=b:c -n 'Imb.*k=2' -r"),
        ("./wrapper --system testbed", "./wrapper --system testbed"),
        ("reframe 'not closed", "reframe 'not closed"),
    ):
        assert _in_any_clone(command, "testbed") == repeated


@pytest.mark.slow
def test_partitions_and_environments_are_as_the_session_recorded_them(report, tmp_path):
    packages = {"openmpi": {"version": "5.0.10", "hash": "4s2o7kq"}}

    def change(document: dict) -> None:
        for test in document["runs"][0]["testcases"]:
            measured = test["netproof_measured"]
            if measured and test["partition"] == "gige":
                measured["partition_extras"]["driver"] = "Linux veth 2"
            if measured and test["environ"] == "mpich":
                measured["environment_extras"]["built"] = {"packages": packages}

    main = report(altered(tmp_path, change, BOTH))["index.html"].text
    assert "driver Linux veth 2 Linux veth, shaped by tc Mbit/s 1000 100 MTU" in main
    assert "launches per case 3 3 largest message 512 KiB 128 KiB cases 10 passed" in main
    assert "Linux veth 2 when it was measured, Linux veth, shaped by tc in the site's file" in main
    assert "mpich MPICH 5.0.2 openmpi 5.0.10 /4s2o7kq" in main
    assert "intelmpi Intel MPI 2021.18.1 not built by Spack" in main


@pytest.mark.slow
def test_charts_are_such_as_altair_knows_them(judge):
    # It takes over a second to load, and no other test does.
    import altair as alt

    made = Report(judge("two-switches.json"))
    whole = {figure.name: figure for figure in made.all_figures() if figure.rows}
    sick = Report(judge("sick.json", "testbed:gige"))
    again = [one for one in sick.all_figures() if "measured again" in one.data]
    assert again
    for figure in (*whole.values(), *again):
        alt.LayerChart.from_dict(figure.for_file(), validate=True)


def test_names_with_control_characters_are_xml_in_a_file():
    drawn = ChartFigure("gige-1\x1b[31m \ufffe", {"mark": "\x00"}, {}).for_file()
    assert not re.search("[\x00\x1b\ufffe]", json.dumps(drawn, ensure_ascii=False))


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        ((0.22, 0.85), [0.3, 0.4, 0.5, 0.6, 0.8]),
        ((22, 8500), [50, 100, 200, 500, 1000, 2000, 5000]),
        ((2, 850_000), [10, 100, 1000, 10_000, 100_000]),
    ],
)
def test_an_axis_of_times_has_several_labels_however_short_it_is(times, labels):
    assert [one for one in ticks(times) if times[0] <= one <= times[1]] == labels


@pytest.mark.slow
def test_a_failed_verdict_is_a_report_that_was_written(project, tmp_path):
    session = DATA / "sessions" / "two-switches.json"
    status, said = in_words("report", session, "--to", tmp_path / "out", "--format", "csv,svg")
    assert (status, said) == (0, f"report {tmp_path}/out/charts")
    charts = {path.name for path in (tmp_path / "out" / "charts").iterdir()}
    assert {"imb-sendrecv-4-ranks.csv", "imb-sendrecv-4-ranks.svg"} <= charts
    assert "netpipe-inter-node-oneway-gige-signature.svg" in charts
    assert not (tmp_path / "out" / "index.html").exists()


@pytest.mark.slow
def test_what_was_measured_again_is_in_its_chart_and_in_a_csv_of_its_own(judge, tmp_path):
    judged = judge("sick.json", "testbed:gige")
    made = Report(judged, ("csv",))
    figure = _figure(made, "netpipe-tcp-inter-node-oneway")
    write(made, tmp_path)
    with (tmp_path / "charts" / f"{figure.name}-again.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert all(re.fullmatch(r"job \d+ on gige-1, gige-2", row["where"]) for row in rows)
    drawn = figure.for_file()["datasets"]["measured again"]
    assert [row["time_us"] for row in drawn] == [float(row["time_us"]) for row in rows]
    assert "Thin lines with +: measured again" in " ".join(figure.sentences)


@pytest.mark.slow
def test_files_are_what_their_suffix_says(judge, tmp_path):
    made = Report(judge("passed.json", "testbed:gige"), ("png", "pdf", "svg"))
    write(made, tmp_path)
    beginnings = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}
    found = list((tmp_path / "charts").iterdir())
    assert {path.suffix[1:] for path in found} == set(beginnings)
    for path in found:
        assert path.read_bytes().startswith(beginnings[path.suffix[1:]])


@pytest.mark.slow
def test_a_stored_session_has_the_same_pages_but_for_where_it_lies(project, tmp_path):
    session, store = altered(tmp_path, with_provenance, BOTH), tmp_path / "store"
    in_words("store", "add", session, "--store", store)
    said = in_words("report", "newest", "--store", store, "--to", tmp_path / "stored")
    assert said == (0, f"report {tmp_path}/stored/index.html")
    assert in_words("report", session, "--to", tmp_path / "reported")[0] == 0
    (place,) = store.glob("system=*/month=*/session=*")

    def pages(name: str, command: str, lies: Path) -> dict[str, str]:
        several = {path.name: path.read_text() for path in (tmp_path / name).glob("*.html")}
        return {
            page: text.replace(command, "COMMAND").replace(str(lies), "PATH")
            for page, text in several.items()
        }

    stored = pages("stored", f"netproof report newest --store {store}", place)
    assert stored == pages("reported", f"netproof report {session}", session)
    assert "How nodes or jobs differ" in stored["index.html"]
