"""The criteria applied to the figures of the studies."""

from __future__ import annotations

import dataclasses
import shutil

import pytest
from made_tables import RECORDED, shown
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.criteria.rate import loss
from netproof.errors import NetproofError
from netproof.experiments.literature import DIRECTORY, load, names
from netproof.measurement.links import Link
from netproof.session import session


class TestNetworkAdapters:
    adapters = load("network-adapters").adapters

    def test_only_mpi_over_tcp_has_a_share_of_the_line_rate(self):
        shares = {a.name: self.adapters.line_rate_share(a) for a in self.adapters.columns}
        assert {name for name, share in shares.items() if share} == {
            "B'Com A",
            "Intel A",
            "Intel B",
        }
        assert shares["B'Com A"] == pytest.approx(99 / 117.69, abs=1e-4)


class TestNetPipeHowTo:
    study = load("netpipe-howto")

    def test_its_rows_show_that_mbps_is_of_two_to_the_twenty_bits(self):
        for row in self.study.run.rows:
            slow, fast = ((row.size * 8) / (row.seconds + d) for d in (0.5e-6, -0.5e-6))
            assert slow / 2**20 - 0.005 <= row.mbps <= fast / 2**20 + 0.005
        first = self.study.run.rows[0]
        assert first.size * 8 / (first.seconds + 0.5e-6) / 1e6 > first.mbps + 0.005

    def test_its_latency_by_the_rows_is_a_little_below_the_one_it_prints(self):
        assert self.study.run.landmarks().latency_us == pytest.approx(33)
        assert self.study.run.latency_printed_s == pytest.approx(35e-6)

    def test_its_best_throughput_is_a_share_of_the_line_rate_at_its_mtu(self):
        best = next(f for f in self.study.figures if f.unit == "Mbps")
        assert best.shares(self.study.mbps)[0] == pytest.approx(0.864, abs=5e-4)


# The studies' files: read strictly, and shown.

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


# A session stands alongside each study, or why not.

GIGE_MB_S = Link(1000, 1500).line_rate_mb_s()


class TestAlongsideASession:
    """The recorded NetPIPE session, of two switches and four MPI libraries."""

    stored = session.load(RECORDED / "netpipe.json")

    def landmarks(self, *where):
        """Landmarks of partition, environment, function, path, direction."""
        (found,) = (
            dataclasses.asdict(r.measured.landmarks)
            for r in self.stored.results
            if r.case
            and (
                r.partition,
                r.environment,
                r.case.function,
                r.case.path,
                r.case.direction,
            )
            == where
        )
        return found

    def rows(self, study, stored=None):
        """Cells of the tables behind the heading of the session, by their first ones."""
        text = shown(study, stored=stored or self.stored)
        cells = [
            tuple(cell for cell in line.strip().split("  ") if cell)
            for line in text[text.index("alongside it, ") :].splitlines()
        ]
        return {
            " ".join(row[:1]).strip(): tuple(c.strip() for c in row[1:]) for row in cells if row
        }

    def peaks(self, stored=None):
        """The rows of the e325 table by where and network."""
        text = shown("e325-opteron", stored=stored or self.stored)
        rows = [line.split() for line in text[text.index("alongside it, ") :].splitlines()]
        return {
            (row[0], " ".join(row[2:4]) if row[0] == "between" else " ".join(row[3:5])): row[-9:]
            for row in rows
            if row[:2] in (["between", "nodes"], ["in", "a"])
        }

    def test_the_e325_table_has_each_configuration_between_and_inside_nodes(self):
        peaks = self.peaks()
        assert len(peaks) == 2 * 2 * 4
        mpi = self.landmarks("gige", "mpich", "mpi", "inter-node", "oneway")
        tcp = self.landmarks("gige", "mpich", "tcp", "inter-node", "oneway")
        assert peaks["between", "gige mpich"] == [
            f"{mpi['peak_mb_s'] * 8:.0f}",
            str(mpi["peak_size"]),
            f"{tcp['peak_mb_s'] * 8:.0f}",
            str(tcp["peak_size"]),
            f"{loss(mpi['peak_mb_s'], tcp['peak_mb_s']):.1%}",
            f"{mpi['peak_mb_s'] / GIGE_MB_S:.1%}",
            f"{tcp['peak_mb_s'] / GIGE_MB_S:.1%}",
            f"{mpi['latency_us']:.2f}",
            f"{tcp['latency_us']:.2f}",
        ]
        assert peaks["in", "gige mpich"][5:7] == ["-", "-"]

    def test_the_adapter_page_has_each_way_of_bidirectional_netpipe(self):
        text = shown("network-adapters", stored=self.stored)
        assert "gige, each way, MB/s" in text
        assert "fast-ethernet, each way, MB/s" in text
        alongside = text[text.index("gige, each way") : text.index("fast-ethernet, each way")]
        several = [
            self.landmarks("gige", environment, "mpi", "inter-node", "bidirectional")
            for environment in ("openmpi4", "openmpi5", "mpich", "intelmpi")
        ]
        for head, name, form in (
            ("latency µs", "latency_us", ".1f"),
            ("peak", "peak_mb_s", ".1f"),
            ("peak at", "peak_size", "d"),
            ("at 64 KB", "rate_64_kib_mb_s", ".1f"),
            ("at 16 KB", "rate_16_kib_mb_s", ".1f"),
            ("at 4 KB", "rate_4_kib_mb_s", ".1f"),
            ("at 1 KB", "rate_1_kib_mb_s", ".1f"),
        ):
            line = next(x for x in alongside.splitlines() if x.strip().startswith(f"{head}  "))
            assert line.split()[-4:] == [f"{one[name]:{form}}" for one in several]
        of_line = next(x for x in alongside.splitlines() if "peak of line rate" in x)
        assert of_line.split()[-1] == f"{several[-1]['peak_mb_s'] / GIGE_MB_S:.1%}"
        of_link = next(x for x in alongside.splitlines() if "peak of link" in x)
        assert of_link.split()[-1] == f"{several[-1]['peak_mb_s'] / 125:.1%}"

    def test_what_the_session_lacks_is_absent_with_the_reason(self):
        text = shown("gige-mpi-tests", stored=self.stored)
        assert self.rows("gige-mpi-tests")["gige mpich, IMB PingPong: latency"][0] == "absent"
        assert text.count("absent: gige mpich IMB PingPong: the session does not have it\n") == 1

    @pytest.mark.slow
    def test_a_case_that_failed_is_absent_with_its_phase(self):
        results = tuple(
            dataclasses.replace(r, result="fail", phase="sanity", measured=None)
            if r.case and (r.partition, r.environment) == ("gige", "mpich")
            else r
            for r in self.stored.results
        )
        stored = dataclasses.replace(self.stored, results=results)
        assert self.peaks(stored)["between", "gige mpich"] == ["absent"] * 9
        assert self.peaks(stored)["in", "gige mpich"][5:7] == ["-", "-"]
        text = shown("e325-opteron", stored=stored)
        assert "absent: gige mpich NetPIPE mpi inter-node oneway: fail in sanity\n" in text
        assert self.rows("network-adapters", stored)["gige mpich"] == ("absent",) * 5

    def test_a_session_of_jobs_alone_cannot_stand_alongside(self):
        jobs = tuple(r for r in self.stored.results if r.case is None)
        with pytest.raises(NetproofError, match=r"netpipe\.json: has no case on two ranks"):
            shown(stored=dataclasses.replace(self.stored, results=jobs))
