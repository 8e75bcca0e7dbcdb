"""A session stands alongside each study, or why not."""

from __future__ import annotations

import dataclasses

import pytest
from made_tables import RECORDED, shown

from netproof.criteria.rate import loss
from netproof.errors import NetproofError
from netproof.measurement.links import Link
from netproof.session import session

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
        assert "absent: gige mpich NetPIPE MPI inter-node oneway: fail in sanity\n" in text
        assert self.rows("network-adapters", stored)["gige mpich"] == ("absent",) * 5

    def test_a_session_of_jobs_alone_cannot_stand_alongside(self):
        jobs = tuple(r for r in self.stored.results if r.case is None)
        with pytest.raises(NetproofError, match=r"netpipe\.json: has no case on two ranks"):
            shown(stored=dataclasses.replace(self.stored, results=jobs))
