"""The studies' files: read strictly, and shown."""

from __future__ import annotations

import io
import shutil

import pytest
from made_tables import RECORDED, shown
from rich.console import Console
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.experiments.literature import DIRECTORY, load, names
from netproof.present.studies import show

STUDIES = (
    *("e325-opteron", "gige-mpi-tests", "gige-synthetic", "netpipe-howto", "network-adapters"),
)


def test_the_five_studies_are_there_and_each_can_be_read():
    assert names() == STUDIES
    for name in STUDIES:
        assert load(name).source


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

    @pytest.mark.slow
    def test_a_table_says_which_mbps_it_has(self):
        report = RECORDED / "healthy.json"
        ran = CliRunner().invoke(app, ["measure", "study", "--list", str(report)])
        assert "one way; Mbps of 10⁶ bit/s" in ran.stdout
        assert "Mbps of 1048576 bit/s; over a link" in ran.stdout

    def test_a_session_that_is_none_is_an_error(self, tmp_path):
        ran = CliRunner().invoke(app, ["measure", "study", "--list", str(tmp_path / "run-9.json")])
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "run-9.json: is not there" in ran.stderr

    def test_prints_a_study_and_exits_0(self):
        ran = CliRunner().invoke(app, ["measure", "study", "--list", "gige-mpi-tests"])
        assert ran.exit_code == 0
        assert "23.6 µs" in ran.stdout

    def test_an_unknown_study_is_an_error_on_stderr_and_exit_2(self):
        ran = CliRunner().invoke(app, ["measure", "study", "--list", "e326"])
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "'e326' is no study" in ran.stderr


@pytest.fixture
def edited(tmp_path):
    """A copy of the studies, one of them with a text replaced; gives file and line of it."""
    shutil.copytree(DIRECTORY, tmp_path, dirs_exist_ok=True)

    def edit(study, old, new):
        path = tmp_path / f"{study}.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return tmp_path, f"{path}:{text[: text.index(old)].count(chr(10)) + 1}: "

    return edit


class TestStrictness:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("study", "old", "new", "said"),
        [
            ("e325-opteron", "title:", "titel:", "key 'title': missing, expected text"),
            (
                "e325-opteron",
                "peak: 1876",
                "peak: fast",
                "key 'peak': found 'fast', expected a pos",
            ),
            ("e325-opteron", "peak: 1876", "peak: -1", "key 'peak': found -1, expected a positive"),
            ("e325-opteron", "peak: 1876", "peak: true", "key 'peak': found True, expected a pos"),
            ("e325-opteron", "peak: 1876", "peak: .nan", "key 'peak': found nan, expected a posit"),
            ("e325-opteron", "peak: 1876, ", "", "key 'peak': missing, expected a positive number"),
            (
                "e325-opteron",
                "mbps: unstated",
                "mbps: 1024",
                "key 'mbps': found 1024, expected one",
            ),
            ("e325-opteron", "mbps: unstated", "", "key 'mbps': missing, expected one of 1000000"),
            ("e325-opteron", "    mtu_assumed: 1500", "", "takes link_mbit_s and an mtu"),
            (
                "e325-opteron",
                "where: between nodes",
                "where: ''",
                "key 'where': found '', expected",
            ),
            ("e325-opteron", "study: e325-opteron", "study: other", "key 'study': found 'other'"),
            ("network-adapters", "mtu: 1500", "mut: 1500", "key 'mut': unknown here"),
            ("network-adapters", "over_tcp: true", "over_tcp: 1", "expected true or false"),
            (
                "network-adapters",
                "64: 89",
                "32: 89",
                "key 'rates': found rates at 32, 16, 4, 1 KiB",
            ),
            ("network-adapters", "mtu: 1500", "mtu:", "key 'mtu': found nothing; give a value"),
            ("netpipe-howto", "sweeps: [mtu]", "sweeps: [mut]", "'mut' is no parameter; those are"),
            ("netpipe-howto", "    sweeps: [mtu]\n", "", "the part shows nothing: give tables"),
            (
                "netpipe-howto",
                "path: inter-node",
                "path: around",
                "found 'around', expected inter-node",
            ),
            ("netpipe-howto", "bytes: 2,", "bytes: 1,", "expected increasing ones"),
            ("netpipe-howto", "bytes: 2,", "bytes: 2.5,", "expected a positive whole number"),
            ("netpipe-howto", "is: equal", "is: near", "key 'is': found 'near', expected one of"),
            ("netpipe-howto", "unit: us", "unit: ns", "key 'unit': found 'ns', expected one of us"),
            (
                "gige-mpi-tests",
                "value: 9, unit: us",
                "value: 9, unit: us, mtu: 9000",
                "link_mbit_s",
            ),
            ("gige-mpi-tests", "unit: us}", "unit: us, link_mbit_s: 1}", "has no share of a link"),
        ],
    )
    def test_what_is_missing_unknown_or_of_another_kind_is_named(
        self, edited, study, old, new, said
    ):
        directory, _ = edited(study, old, new)
        with pytest.raises(NetproofError) as error:
            load(study, directory)
        assert said in str(error.value)
        assert f"{study}.yaml:" in str(error.value)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("peak: 788", "peak: none"),
            (
                "  - where: in a node\n    network: GigE tun",
                "  - nowhere: in a node\n    network: x",
            ),
            ("mbps: unstated", "mbps: unstated\nmbps: unstated"),
        ],
    )
    def test_the_line_is_the_one_at_fault(self, edited, old, new):
        directory, place = edited("e325-opteron", old, new)
        with pytest.raises(NetproofError) as error:
            load("e325-opteron", directory)
        line = int(str(error.value).split(":")[1])
        assert line - int(place.split(":")[1]) in (0, 1)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("study: [", "no YAML"),
            ("- 1", "expected a study's keys"),
            ("", "expected a study's keys"),
            (
                "study: empty\ntitle: t\nsource: s\n",
                "a study has peaks, adapters, a run or figures",
            ),
            ("study: empty\ntitle: t\nsource: s\nfigures: []\n", "a list that is not empty"),
            ("study: empty\ntitle: t\nsource: s\nfigures: [1]\n", "expected a mapping"),
            ("study: empty\ntitle: t\nsource: s\nfigures: 1\n", "expected a list"),
            ("study: empty\ntitle: t\nsource: s\nrun: 1\n", "expected a mapping"),
            (
                "study: empty\ntitle: t\nsource: s\nnotes: [1]\n",
                "key 'notes': found 1, expected text",
            ),
        ],
    )
    def test_what_is_no_study_is_refused(self, tmp_path, text, said):
        (tmp_path / "empty.yaml").write_text(text)
        with pytest.raises(NetproofError, match=r"empty\.yaml:\d+: ") as error:
            load("empty", tmp_path)
        assert said in str(error.value)

    def test_bytes_that_are_no_text_are_refused(self, tmp_path):
        (tmp_path / "empty.yaml").write_bytes(b"\xff\xfe\xfd")
        with pytest.raises(NetproofError, match="cannot be read"):
            load("empty", tmp_path)

    def test_a_name_that_no_study_has_is_answered_with_those_there_are(self):
        with pytest.raises(NetproofError, match="there are e325-opteron, gige"):
            show("e326", Console(file=io.StringIO()))

    def test_a_folder_without_studies_says_what_to_do(self, tmp_path):
        with pytest.raises(NetproofError, match="run netproof from its checkout"):
            names(tmp_path)
