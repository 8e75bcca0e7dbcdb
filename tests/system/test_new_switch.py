"""docs/new-switch.md, done: a third switch is measured alone and judged alongside the store."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from netproof.session import session
from netproof.store import Store

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("three_switches"), pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "new-switch.md").read_text()
NEW = "small-buffer"

SHORTER = """
for _one in site_configuration["systems"][0]["partitions"]:
    _one["environs"] = ["mpich"]
    # What curves flag is not what the walk is about, and takes minutes to measure again here.
    _criteria = _one["extras"]["criteria"]
    for _name in ("inversion", "jump", "dropout"):
        _criteria[_name] = {**_criteria.get(_name, {}), "warn": None, "fail": None}
    # Small buffers cost more than anything else that this machine may do meanwhile.
    _criteria["disturbance"] = {"others": 1, "steal": 1}
_mpich = next(one for one in site_configuration["environments"] if one["name"] == "mpich")
_mpich["features"] = ["mpi", "mpich", "imb"]
_why = "left out, so that all is measured within two minutes"
_mpich["extras"]["absent"] = {"netpipe-tcp": _why, "netpipe-mpi": _why, "osu": _why}
"""
"""One MPI library, no NetPIPE, nothing flagged along a curve, and nothing taken for disturbed."""


def block(first: str) -> str:
    """The page's lines of code from one on, to the end of its block, without the indent."""
    begin = PAGE.index(f"    {first}\n")
    (found,) = re.findall(r"\A(?: {4}.*\n)+", PAGE[begin:])
    return textwrap.dedent(found)


@pytest.fixture(scope="module")
def three_switches(other_testbed, tmp_path_factory) -> Path:
    """The topology of the testbed with the page's switch, which is up."""
    topology = tmp_path_factory.mktemp("topology") / "three-switches.yaml"
    default = (ROOT / "ci" / "testbed" / "topology.yaml").read_text()
    topology.write_text(default + textwrap.indent(block("  small-buffer:"), "  "))
    other_testbed(topology)
    return topology


@pytest.fixture(scope="module")
def folder(run, three_switches, tmp_path_factory) -> Path:
    """Folder with a store of both old switches, the new one's run alone, and its site's file."""
    folder = tmp_path_factory.mktemp("new-switch")
    site = folder / "site-config"
    shutil.copytree(ROOT / "site-config", site, ignore=shutil.ignore_patterns("__pycache__"))
    own = (site / "testbed.py").read_text()
    own = own.replace("Path(__file__).resolve().parents[1]", f"Path({str(ROOT)!r})")
    (site / "testbed.py").write_text(own + SHORTER)
    settings = {"RFM_CONFIG_PATH": str(site), "NETPROOF_STORE": str(folder / "store")}
    settings["NETPROOF_TOPOLOGY"] = str(ROOT / "ci" / "testbed" / "topology.yaml")
    alone = ("--exec-policy=serial", "-S", "launches=1")
    # One function that breaks, one that does not, and one without a size.
    few = ("-n", "Imb(PingPong|Alltoall|Barrier)")
    common = ("-c", str(ROOT / "checks"), *few, *alone, "-r")

    old = settings | {"RFM_REPORT_FILE": str(folder / "old.json")}
    run(folder, "reframe", "--system", "testbed", *common, **old)
    kept = run(folder, "netproof", "store", "add", "old.json", **old)
    assert kept.returncode == 0, kept.stderr

    shorter = block('if _topology.switches[-1].name == "small-buffer":')
    (site / "testbed.py").write_text(own + "\n" + shorter + SHORTER)
    settings["NETPROOF_TOPOLOGY"] = str(three_switches)
    new = ("--system", f"testbed:{NEW}")
    run(folder, "reframe", *new, *common, **settings, RFM_REPORT_FILE=str(folder / "new.json"))
    return folder


@pytest.fixture(scope="module")
def netproof(run, folder, three_switches):
    def command(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(
            folder,
            *("netproof", name, "new.json", f"testbed:{NEW}", *arguments),
            RFM_CONFIG_PATH=str(folder / "site-config"),
            NETPROOF_STORE=str(folder / "store"),
            NETPROOF_TOPOLOGY=str(three_switches),
        )

    return command


def test_alone_it_is_all_that_was_measured_and_has_no_envelope(netproof, folder):
    results = session.load(folder / "new.json").results
    assert {result.partition for result in results if result.measured} == {NEW}
    said = netproof("verdict", "--all").stdout
    assert "no scores: the baseline's partition is no part of what was asked for" in said
    red = "".join(re.findall(r"(?m)^FAIL .*IMB Alltoall 4 ranks.*$", said))
    # Inversions and guidelines are in multiples too, of the switch's own times.
    assert not re.search(rf" µs of testbed:(?!{NEW} )", red)


def test_alongside_the_store_it_comes_out_red_in_alltoall_by_the_envelope(netproof, folder):
    judged = netproof("verdict", "--all", "--with-stored")
    assert judged.returncode == 1
    assert re.search(
        rf"FAIL testbed:{NEW} mpich IMB Alltoall 4 ranks \(switch {NEW}\): [\d.e+]+ µs at \d+ bytes"
        r", [\d.]+ times the [\d.e+]+ µs of testbed:gige mpich IMB Alltoall 4 ranks"
        r" \(switch gige, of \d{4}-\d\d-\d\d\)",
        judged.stdout,
    )
    assert {*re.findall(r"(?m)^FAIL testbed:(\S+) ", judged.stdout)} == {NEW}
    assert re.search(rf"{NEW} mpich .*IMB Alltoall.*: red at .*4 ranks", judged.stdout)
    (stored,) = Store(folder / "store").sessions()
    for old in ("gige", "fast-ethernet"):
        assert re.search(
            rf"compared with: {old} mpich, of \d{{4}}-\d\d-\d\d \([\w ]+\): \d+ cases? of"
            rf" session {stored.name}",
            judged.stdout,
        )


def test_the_report_answers_where_it_breaks_down_with_plots_of_only_that(netproof, folder):
    made = netproof("report", "--with-stored", "--to", "report")
    assert made.returncode == 0, made.stderr
    page = (folder / "report" / f"switch-{NEW}.html").read_text()
    assert f"{NEW} compared with the other switches" in page
    for old in ("gige", "fast-ethernet"):
        assert re.search(rf"{NEW} against {old}, of \d{{4}}-\d\d-\d\d, \d+ cases: ", page)
    assert re.search(
        rf"{NEW} mpich .*IMB Alltoall.*: red at .*4 ranks, .*bytes by .*envelope", page
    )
    plotted = re.findall(r"<h3>([^<]*): time against message size</h3>", page)
    assert "IMB Alltoall 4 ranks" in plotted
    assert not any("Barrier" in title for title in plotted)
