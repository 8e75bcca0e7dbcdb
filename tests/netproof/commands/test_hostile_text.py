"""Names from outside are text and nothing else: in a job's script, in JUnit and in the hook."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import made_partition
import pytest
from made_programs import program

from netproof.benchmarks.netpipe import BENCHMARK as NETPIPE
from netproof.commands.night import Night, _junit, _tell, summary
from netproof.measurement.case import Case
from netproof.session import plan
from netproof.site.partition import Partition

ROOT = Path(__file__).resolve().parents[3]

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "x\ntouch pwned\n",
    "a && touch pwned",
    "${IFS}touch${IFS}pwned",
    "%R %(touch pwned) % \\",
    "* ? [a-z] ~ {a,b}",
    "-h",
    "é ▲ \u202e\x1b[31m",
]
PARTITION = made_partition.PARTITION.model_copy(
    update={"nodes": 2, "ranks_per_node": 1, "rank_counts": (2,)}
)


def netpipe_steps(partition: Partition, srun: Sequence[str]) -> list[plan.Step]:
    """A launch of each of NetPIPE's variants."""
    cases = NETPIPE.cases(("s", "p", "e"), (2,), 1, all_functions=False)
    return [plan.step_of(case, 1, partition, srun) for case in cases]


# What it is called with, an argument a line with its line ends written out.
SAYS = """{ printf '%s\\0' "${0##*/}" "$@"; printf '\\n'; } >>"$CALLED"
"""


@pytest.fixture
def job(tmp_path):
    """Run a job where Slurm's programs only print: ``job(steps, nodes, address)``.

    Returns each call as the list of its words.
    """
    programs, folder = tmp_path / "bin", tmp_path / "job"
    folder.mkdir()
    for source in plan.SHELL_FILES:
        (folder / source.name).write_bytes(source.read_bytes())
    for name in ("srun", "scontrol", "squeue", "scancel"):
        more = {
            "srun": '[[ " $* " != *" listen-on "* ]] ||'
            ' printf "%s\\n" "$GREETING" "listening $ADDRESS 1 2 3 4 5 6 7 8"',
            "scontrol": 'printf "%s\\n" "$NODES"',
        }
        program(programs / name, SAYS + more.get(name, ""))

    def run(
        steps: Sequence[plan.Step],
        nodes: list[str],
        address: str = "10.0.0.1",
        greeting: str = "",
        partition: Partition = PARTITION,
        refused: str = "",
    ) -> list[list[str]]:
        plan.JobPlan(1, partition.model_dump(), (tuple(steps),)).write(folder)
        (folder / plan.SCRIPT).write_text(plan.script(sys.executable, ROOT))
        ran = subprocess.run(
            ["bash", plan.SCRIPT],
            cwd=folder,
            env={
                "PATH": f"{programs}:{os.environ['PATH']}",
                "CALLED": str(tmp_path / "called"),
                "NODES": "\n".join(nodes),
                "ADDRESS": address,
                "GREETING": greeting,
                "SLURM_JOB_ID": "1",
                "SLURM_JOB_NODELIST": nodes[0],
                "SLURM_JOB_NUM_NODES": "2",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == ((3, refused) if refused else (0, ""))
        assert not list(tmp_path.rglob("pwned"))
        called = (tmp_path / "called").read_bytes().decode().split("\0\n")
        return [call.split("\0") for call in called if call]

    return run


@pytest.mark.parametrize("text", [one for one in HOSTILE if one.isprintable()])
def test_plugin_and_arguments_reach_the_programs_as_they_are(job, text):
    partition = PARTITION.model_copy(update={"imb_arguments": ("-x", text)})
    srun = ["srun", f"--mpi={text}"]
    steps = [
        plan.step_of(Case("s", "p", "e", "imb", "Alltoall", 2, 1), 1, partition, srun),
        *netpipe_steps(partition, srun),
    ]
    calls = job(steps, ["n-1", "n-2"], partition=partition)
    alltoall = next(call for call in calls if "-npmin" in call)
    assert alltoall[1] == f"--mpi={text}"
    assert alltoall[-3:] == ["-x", text, "Alltoall"]
    assert sum(f"--mpi={text}" in call for call in calls) == 5


@pytest.mark.parametrize("text", [one for one in HOSTILE if "\n" not in one])
def test_the_names_of_nodes_are_words_too_and_a_greeting_is_no_address(job, text):
    steps = netpipe_steps(PARTITION, ["srun"])
    calls = job(steps, [text, "n-2"], greeting=text)
    launches = [call for call in calls if "-o" in call]
    assert len(launches) == 8
    for call in launches:
        (nodes,) = [argument for argument in call if argument.startswith("--nodelist=")]
        assert nodes in (f"--nodelist={text},n-2", f"--nodelist={text}")
    assert {call[call.index("run") + 1] for call in launches if "run" in call} == {"10.0.0.1"}


def test_an_answer_without_an_address_ends_the_job_and_is_quoted(job):
    printed = "welcome\nlistening nobody 1 2 3 4 5 6 7 8\n"
    refused = f"netproof.jobs: n-1 printed no address to listen on: {printed}\n"
    steps = netpipe_steps(PARTITION, ["srun"])
    calls = job(steps, ["n-1", "n-2"], address="nobody", greeting="welcome", refused=refused)
    assert not [call for call in calls if "run" in call]


def test_job_names_of_contention_domains_are_words_and_distinguished_by_a_checksum():
    names = [plan.job_name(text) for text in [*HOSTILE, "Summit X450", "Summit-X450", ""]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"netproof-[A-Za-z0-9._-]*", name) for name in names)


def night(text: str) -> Night:
    started = datetime(2026, 11, 21, 1, 0).astimezone()
    folder, times = Path("nowhere"), {"started": started, "ended": started + timedelta(hours=2)}
    return Night(text, folder, folder, **times, faults=[f"node {text} is down"])


class TestTelling:
    @pytest.mark.parametrize("text", [*HOSTILE, "]]><x/>", "&x;", "\x00\ud800"])
    def test_junit_stays_one_document_with_one_test(self, tmp_path, text):
        suites = ElementTree.fromstring(_junit(night(text)))
        (error,) = suites.iter("error")
        assert error.get("message").startswith("node ")
        # A test of one name each night.
        (test,) = suites.iter("testcase")
        assert test.get("name") == "night"
        assert [element.tag for element in suites.iter()] == [
            *("testsuites", "testsuite", "testcase", "error")
        ]

    @pytest.mark.parametrize("text", HOSTILE)
    def test_the_hook_reads_text_and_runs_none_of_it(self, tmp_path, monkeypatch, text):
        monkeypatch.chdir(tmp_path)
        mail = summary(night(text))
        assert _tell(f"cat >{shlex.quote(str(tmp_path / 'mail'))}", mail) is None
        assert _tell('read -r subject && printf %s "$subject" >subject', mail) is None
        assert (tmp_path / "mail").read_text() == mail
        assert (tmp_path / "subject").read_text() == mail.splitlines()[0]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mail", "subject"]

    def test_a_name_cannot_add_a_line_that_looks_like_the_night_s_own(self):
        mail = summary(night("x\nnetproof x: PASSED\nexit status 0\n"))
        assert [line for line in mail.splitlines() if line.startswith(("netproof", "exit"))] == [
            "netproof x",
            "exit status 2",
        ]


@pytest.mark.parametrize("name", ["$(touch pwned)", "`touch pwned`", "a\nb", "a'b", 'a"b', "a\\b"])
def test_a_checkout_whose_name_reframe_would_run_is_refused(tmp_path, name):
    checkout = tmp_path / name
    (checkout / "ci").mkdir(parents=True)
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "reframe").touch(0o755)
    (checkout / "ci" / "activate").write_bytes((ROOT / "ci" / "activate").read_bytes())
    ran = subprocess.run(
        ["bash", "-c", '. "$0" && echo entered', str(checkout / "ci" / "activate")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "ReFrame cannot run in a folder of such a name; move it" in ran.stderr
    assert not list(tmp_path.rglob("pwned"))
