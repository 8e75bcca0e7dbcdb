"""The studies' files: read strictly, and shown."""

from __future__ import annotations

import shutil

import pytest
from made_tables import RECORDED, shown
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.experiments.literature import DIRECTORY, load, names

STUDIES = (
    *("e325-opteron", "gige-mpi-tests", "gige-synthetic", "netpipe-howto", "network-adapters"),
)


def test_the_five_studies_are_there_and_each_can_be_read():
    assert names() == STUDIES
    for name in STUDIES:
        study = load(name)
        assert study.name == name
        assert study.peaks or study.adapters or study.run or study.figures
        assert study.mbps or all(one.unit != "Mbps" for one in study.figures)


class TestShow:
    def test_shows_one_study_with_losses_and_shares_computed(self):
        text = shown("e325-opteron")
        for share in ("0.2%", "12.2%", "21.9%", "1.1%", "-44.3%", "51.2%", "43.6%", "45.5%"):
            assert share in text
        assert "95.3% or 99.9%*" in text
        assert "network-adapters" not in text

    @pytest.mark.slow
    def test_shows_all_of_them_without_cutting_a_cell(self):
        text = shown()
        assert all(name in text for name in STUDIES)
        assert "…" not in text
        assert "InterruptThrottleRate=0" in text


class TestCommand:
    def test_shows_a_session_that_is_named(self):
        report = RECORDED / "repeated-1.json"
        ran = CliRunner().invoke(app, ["measure", "study", "--list", "gige-mpi-tests", str(report)])
        assert ran.exit_code == 0
        assert f"alongside it, {report}" in ran.stdout
        assert "gige mpich, IMB PingPong: latency" in ran.stdout
        assert "MB/s of 10⁶ bytes; over a link, peaks are of 131072 bytes" in ran.stdout

    def test_a_session_that_is_none_is_an_error(self, tmp_path):
        ran = CliRunner().invoke(app, ["measure", "study", "--list", str(tmp_path / "run-9.json")])
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "run-9.json: is not there" in ran.stderr

    def test_an_unknown_study_is_an_error_on_stderr_and_exit_2(self):
        ran = CliRunner().invoke(app, ["measure", "study", "--list", "e326"])
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "'e326' is no study" in ran.stderr


@pytest.fixture
def edited(tmp_path):
    """A copy of the studies, one of them with a text replaced."""
    shutil.copytree(DIRECTORY, tmp_path, dirs_exist_ok=True)

    def edit(study, old, new):
        path = tmp_path / f"{study}.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return tmp_path

    return edit


class TestStrictness:
    @pytest.mark.parametrize(
        ("study", "old", "new", "said"),
        [
            ("e325-opteron", "title:", "titel:", "title: missing, expected text"),
            ("e325-opteron", "peak: 1876", "peak: fast", "peak: found 'fast', expected a positive"),
            ("e325-opteron", "peak: 1876", "peak: .nan", "'.nan' is no number"),
            ("e325-opteron", "mbps: unstated", "mbps: 1024", "mbps: found 1024, expected"),
            ("network-adapters", "mtu: 1500", "mut: 1500", "mut: unknown here"),
            ("network-adapters", "mtu: 1500", "mtu:", "mtu: found nothing; give a value"),
            ("netpipe-howto", "unit: us", "unit: ns", "unit: found 'ns', expected"),
        ],
    )
    def test_what_is_missing_unknown_or_of_another_kind_is_named(
        self, edited, study, old, new, said
    ):
        with pytest.raises(NetproofError, match=f"{study}.yaml: cannot be read") as error:
            load(study, edited(study, old, new))
        assert said in str(error.value)

    @pytest.mark.parametrize("content", [b"study: [", b"- 1", b"", b"\xff\xfe\xfd"])
    def test_what_is_no_study_is_refused(self, tmp_path, content):
        (tmp_path / "empty.yaml").write_bytes(content)
        with pytest.raises(NetproofError, match=r"empty\.yaml: cannot be read: "):
            load("empty", tmp_path)

    def test_a_folder_without_studies_says_what_to_do(self, tmp_path):
        with pytest.raises(NetproofError, match="run netproof from its checkout"):
            names(tmp_path)
