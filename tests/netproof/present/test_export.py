"""A stored session is exported as CSV, JSON, and files for NetPIPE's readers and gnuplot."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.benchmarks import netpipe
from netproof.commands.cli import app
from netproof.commands.stores import Format
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.measurement.case import Curve
from netproof.present import documents
from netproof.present.export import csv_cell, export, netpipe_text
from netproof.session import session
from netproof.session.session import CheckResult
from netproof.store import Store, StoredSession
from netproof.store.tables import PATH_COLUMNS, TABLES

PASSED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "passed.json"


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> tuple[Store, StoredSession]:
    store = Store.create(tmp_path_factory.mktemp("store") / "store")
    return store, ingest(store, PASSED).stored


def exported(stored, form: Format, folder: Path) -> list[Path]:
    """The files of a stored session in a folder."""
    store, session = stored
    export(store.folder, session.name, form, folder)
    return sorted(folder.iterdir())


def cases() -> dict[str, CheckResult]:
    """The report's cases, by function and direction."""
    return {
        f"{result.case.function} {result.case.direction}": result
        for result in session.load(PASSED).results
        if result.case
    }


@pytest.mark.slow
def test_csv_has_every_row_and_column(stored, tmp_path):
    written = exported(stored, Format.CSV, tmp_path / "out")
    assert {path.name for path in written} == {f"{name}.csv" for name in TABLES}
    for name, schema in TABLES.items():
        with (tmp_path / "out" / f"{name}.csv").open(newline="") as file:
            header = next(csv.reader(file))
        assert header == ["system", "month", "session", *schema.names]
        assert header[:3] == list(PATH_COLUMNS)
    with (tmp_path / "out" / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    measured = cases()["PingPong oneway"]
    times = [float(row["time_us"]) for row in rows if row["function"] == "PingPong"]
    assert times == list(measured.measured.launches[0].curve.time_us)
    with (tmp_path / "out" / "cases.csv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["function"] == "PingPong")
    assert json.loads(row["partition_extras"]) == measured.extras["partition_extras"]


def test_json_has_every_table(stored, tmp_path):
    (path,) = exported(stored, Format.JSON, tmp_path / "out")
    document = json.loads(path.read_text())
    assert document["session"] == stored[1].name
    assert set(document["tables"]) == set(TABLES)
    (header,) = document["tables"]["sessions"]
    assert re.fullmatch(r"2026-11-20T23:32:38\..*Z", header["started"])
    ranks = next(r for r in document["tables"]["launches"] if r["function"] == "PingPong")
    launch = cases()["PingPong oneway"].measured.launches[0]
    assert [one["cpu_s"] for one in ranks["ranks_used"]] == [*launch.used["cpu_s"]]


def test_netpipe_files_say_what_the_session_measured(stored, tmp_path, capsys):
    written = exported(stored, Format.NETPIPE, tmp_path / "out")
    assert "no file" not in capsys.readouterr().out
    assert "gige-intelmpi-imb-PingPong.1.np" in {path.name for path in written}
    for direction in ("oneway", "bidirectional"):
        path = tmp_path / "out" / f"gige-intelmpi-netpipe-tcp-inter-node-{direction}.np"
        read = netpipe.read_file(
            path.read_text(), str(path), bidirectional=direction == "bidirectional"
        ).curve()
        (launch,) = cases()[f"tcp {direction}"].measured.launches
        curve = launch.curve
        assert read.sizes == curve.sizes
        assert read.time_us == pytest.approx(curve.time_us, abs=0.0051)


def test_a_time_too_short_for_netpipe_is_no_zero():
    with pytest.raises(NetproofError, match="shorter than NetPIPE writes"):
        netpipe_text(Curve((8,), (0.001,), (8000.0,)), bidirectional=False)


@pytest.mark.slow
def test_gnuplot_plots_every_script(stored, tmp_path):
    written = exported(stored, Format.NETPIPE, tmp_path / "out")
    scripts = [path for path in written if path.suffix == ".gp"]
    assert len(scripts) == 4
    for script in scripts:
        done = subprocess.run(
            ["gnuplot", script.name], cwd=script.parent, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert "intelmpi netpipe tcp" in script.with_suffix(".svg").read_text()


@pytest.mark.slow
def test_the_commands_find_the_store_by_the_environment(tmp_path):
    command, out = CliRunner(env={"NETPROOF_STORE": str(tmp_path / "store")}), tmp_path / "out"
    assert command.invoke(app, ["store", "add", str(PASSED)]).exit_code == 0
    exporting = ["store", "export", "--format", "json", "--to", str(out)]
    assert command.invoke(app, exporting).exit_code == 0
    assert len(list(out.iterdir())) == 1
    nowhere = CliRunner(env={"NETPROOF_STORE": None}).invoke(app, ["store", "add", str(PASSED)])
    assert nowhere.exit_code == 2
    assert "NETPROOF_STORE" in nowhere.output


def test_nothing_is_written_over_and_a_session_that_is_not_there_is_named(stored, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(NetproofError, match="is not empty; name a new folder"):
        exported(stored, Format.JSON, tmp_path)
    with pytest.raises(NetproofError, match="has no session '2031'"):
        export(stored[0].folder, "2031", Format.JSON, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_text_that_a_spreadsheet_takes_for_a_formula_is_marked_as_text_and_numbers_stay():
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"):
        assert csv_cell(text) == f"'{text}"
    for value in ("gige-1", "", -1.5, None, "a=b"):
        assert csv_cell(value) == value


def test_a_document_is_written_whole_or_not_at_all():
    out = io.StringIO()
    with pytest.raises(ValueError, match="not JSON compliant"):
        documents.write({"a": 1, "z": float("nan")}, out)
    assert out.getvalue() == ""
