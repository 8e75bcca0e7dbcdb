"""Figures of earlier studies: read strictly, and shown with losses, shares and a session's own."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from made_text import printed

from netproof.criteria.rate import loss
from netproof.errors import NetproofError
from netproof.experiments.literature import DIRECTORY, SessionInStudy, load, names
from netproof.measurement.landmarks import Landmarks
from netproof.measurement.links import Link
from netproof.present.studies import blocks
from netproof.session import session
from netproof.session.session import Session

NETPIPE = Path(__file__).resolve().parents[2] / "data" / "sessions" / "netpipe.json"
GIGE_MB_S = Link(1000, 1500).line_rate_mb_s()


def shown(study: str, stored: Session | None = None) -> str:
    """A study as the terminal has it; with a session, only what stands alongside."""
    text = "".join(printed(blocks(load(study), SessionInStudy(stored) if stored else None), 140))
    return text[text.index("alongside it, ") :] if stored else text


def test_only_mpi_over_tcp_has_a_share_of_the_line_rate():
    adapters = load("network-adapters").adapters
    shares = {one.name: adapters.line_rate_share(one) for one in adapters.columns}
    assert {name for name, share in shares.items() if share} == {"B'Com A", "Intel A", "Intel B"}
    assert shares["B'Com A"] == pytest.approx(99 / 117.69, abs=1e-4)


def test_the_rows_of_the_howto_show_that_mbps_is_of_two_to_the_twenty_bits():
    rows = load("netpipe-howto").run.rows
    for row in rows:
        slow, fast = ((row.size * 8) / (row.seconds + d) for d in (0.5e-6, -0.5e-6))
        assert slow / 2**20 - 0.005 <= row.mbps <= fast / 2**20 + 0.005
    assert rows[0].size * 8 / (rows[0].seconds + 0.5e-6) / 1e6 > rows[0].mbps + 0.005
    assert load("netpipe-howto").run.landmarks().latency_us == pytest.approx(33)


def test_a_study_is_shown_with_losses_and_shares_computed():
    text = shown("e325-opteron")
    for share in ("0.2%", "12.2%", "21.9%", "1.1%", "-44.3%", "51.2%", "43.6%", "45.5%"):
        assert share in text
    assert "95.3% or 99.9%*" in text


@pytest.mark.parametrize(
    ("study", "old", "new", "said"),
    [
        ("e325-opteron", "title:", "titel:", "title: missing, expected text"),
        ("e325-opteron", "peak: 1876", "peak: .nan", "'.nan' is no number"),
        ("e325-opteron", "mbps: unstated", "mbps: 1024", "mbps: found 1024, expected"),
        ("network-adapters", "mtu: 1500", "mut: 1500", "mut: unknown here"),
        ("netpipe-howto", "study: netpipe-howto", "- 1", "cannot be read"),
    ],
)
def test_what_is_missing_unknown_or_of_another_kind_is_named(tmp_path, study, old, new, said):
    with pytest.raises(NetproofError, match="no study is there; run netproof from its checkout"):
        names(tmp_path)
    path = Path(shutil.copy(DIRECTORY / f"{study}.yaml", tmp_path))
    text = path.read_text()
    assert old in text
    path.write_text(new if new == "- 1" else text.replace(old, new, 1))
    with pytest.raises(NetproofError, match=f"{study}.yaml: cannot be read") as error:
        load(study, tmp_path)
    assert said in str(error.value)


# The recorded NetPIPE session, of two switches and four MPI libraries, alongside each study.


@pytest.fixture(scope="module")
def stored() -> Session:
    return session.load(NETPIPE)


def landmarks(stored: Session, environment: str, *variant: str) -> Landmarks:
    """Landmarks on gige of a function, path and direction."""
    (found,) = (
        one.measured.landmarks
        for one in stored.results
        if one.case and (one.partition, one.environment) == ("gige", environment)
        if (one.case.function, one.case.path, one.case.direction) == variant
    )
    return found


def peaks(stored: Session) -> dict[tuple[str, str], list[str]]:
    """The rows of the e325 table by where and network."""
    rows = [line.split() for line in shown("e325-opteron", stored).splitlines()]
    return {
        (row[0], " ".join(row[2:4]) if row[0] == "between" else " ".join(row[3:5])): row[-9:]
        for row in rows
        if row[:2] in (["between", "nodes"], ["in", "a"])
    }


def test_the_e325_table_has_each_configuration_between_and_inside_nodes(stored):
    found = peaks(stored)
    assert len(found) == 2 * 2 * 4
    mpi = landmarks(stored, "mpich", "mpi", "inter-node", "oneway")
    tcp = landmarks(stored, "mpich", "tcp", "inter-node", "oneway")
    assert found["between", "gige mpich"] == [
        *(f"{mpi.peak_mb_s * 8:.0f}", str(mpi.peak_size)),
        *(f"{tcp.peak_mb_s * 8:.0f}", str(tcp.peak_size)),
        f"{loss(mpi.peak_mb_s, tcp.peak_mb_s):.1%}",
        *(f"{one.peak_mb_s / GIGE_MB_S:.1%}" for one in (mpi, tcp)),
        *(f"{one.latency_us:.2f}" for one in (mpi, tcp)),
    ]
    assert found["in", "gige mpich"][5:7] == ["-", "-"]


def test_the_adapter_page_has_each_way_of_bidirectional_netpipe(stored):
    text = shown("network-adapters", stored)
    alongside = text[text.index("gige, each way") : text.index("fast-ethernet, each way, MB/s")]
    several = [
        landmarks(stored, environment, "mpi", "inter-node", "bidirectional")
        for environment in ("openmpi4", "openmpi5", "mpich", "intelmpi")
    ]
    lines = alongside.splitlines()
    for head, name, form in (
        ("latency µs", "latency_us", ".1f"),
        ("peak", "peak_mb_s", ".1f"),
        ("peak at", "peak_size", "d"),
        ("at 64 KB", "rate_64_kib_mb_s", ".1f"),
        ("at 1 KB", "rate_1_kib_mb_s", ".1f"),
    ):
        line = next(one for one in lines if one.strip().startswith(f"{head}  "))
        assert line.split()[-4:] == [f"{getattr(one, name):{form}}" for one in several]
    for head, most in (("peak of line rate", GIGE_MB_S), ("peak of link", 125)):
        line = next(one for one in lines if head in one)
        assert line.split()[-1] == f"{several[-1].peak_mb_s / most:.1%}"


def test_what_the_session_lacks_is_absent_with_the_reason(stored):
    text = shown("gige-mpi-tests", stored)
    assert text.count("absent: gige mpich IMB PingPong: the session does not have it\n") == 1
    failed = dataclasses.replace(
        stored,
        results=tuple(
            dataclasses.replace(one, result="fail", phase="sanity", measured=None)
            if one.case and (one.partition, one.environment) == ("gige", "mpich")
            else one
            for one in stored.results
        ),
    )
    assert peaks(failed)["between", "gige mpich"] == ["absent"] * 9
    text = shown("e325-opteron", failed)
    assert "absent: gige mpich NetPIPE mpi inter-node oneway: fail in sanity\n" in text
    jobs = tuple(one for one in stored.results if one.case is None)
    with pytest.raises(NetproofError, match=r"netpipe\.json: has no case on two ranks"):
        SessionInStudy(dataclasses.replace(stored, results=jobs))
