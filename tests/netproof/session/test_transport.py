"""What MPI libraries say of their transport, as real runs on two nodes printed it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netproof.benchmarks import registry
from netproof.session import provenance, session

DATA = Path(__file__).resolve().parents[2] / "data"


def test_the_step_asks_every_library():
    command = provenance.transport_step(
        registry.named("imb").start("", 2), ["srun", "--mpi=pmix"], 2
    )
    assert {"I_MPI_DEBUG=4", "UCX_LOG_LEVEL=info", "--nodes=2"} <= set(command)
    assert command[-1] == "Barrier"


@pytest.mark.parametrize(
    ("library", "told"),
    [
        ("intelmpi", ["[0] MPI startup(): libfabric provider: tcp"]),
        (
            "openmpi4",
            [
                f"[gige-{here}:{pid}] mca: bml: Using {btl} btl for send to"
                f" [[59364,19787],{there - 1}] on node gige-{there}"
                for here, pid, btl, there in (
                    (1, "02865", "self", 1),
                    (1, "02865", "tcp", 2),
                    (2, "02857", "self", 2),
                    (2, "02857", "tcp", 1),
                )
            ],
        ),
        ("mpich", ["libfabric provider: tcp - 198.18.1.0/24"]),
        (
            "openmpi5",
            ["  on-host:  all connections are self", "  off-host: all connections are tcp"],
        ),
    ],
)
def test_each_library_names_its_transport_among_what_it_says(library, told):
    said = provenance.transport_of(DATA / "transport" / library)
    assert list(provenance.telling(said)) == told
    assert not [line for line in said if "times -->" in line or "repetitions" in line]


def test_a_job_that_ended_before_says_why_nothing_is_known(tmp_path):
    why = provenance.transport_of(tmp_path)
    assert isinstance(why, str)
    assert "transport.out: No such file or directory" in why


def test_what_is_said_is_bounded_and_printable(tmp_path):
    lines = [f"line {number} \x1b[31m{'x' * 400}" for number in range(99)]
    (tmp_path / "transport.out").write_text("\n".join(lines))
    (tmp_path / "transport.err").write_text("")
    told = provenance.transport_of(tmp_path)
    assert len(told) == provenance.MOST_LINES + 1
    assert told[-1] == "… and 59 more lines"
    assert all(len(line) <= 200 and line.isprintable() for line in told)


def test_a_session_has_it_of_the_jobs_that_were_asked(tmp_path):
    document = json.loads((DATA / "sessions" / "passed.json").read_text())
    tests = document["runs"][0]["testcases"]
    job = next(test for test in tests if not test.get("netproof_case"))
    job["netproof_transport"] = ["libfabric provider: tcp"]
    path = tmp_path / "run-0.json"
    path.write_text(json.dumps(document))
    found = [result.transport for result in session.load(path).results if result.transport]
    assert found == [("libfabric provider: tcp",)]
