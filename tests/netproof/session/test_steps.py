"""The job's own shell: what crashes before its first figure is launched again, and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from netproof.benchmarks import imb, netpipe
from netproof.session import measured, plan

DATA = Path(__file__).resolve().parents[2] / "data"
IMB_ROW = "            4         1000         1.02         3.92"
NETPIPE_ROW = "       4 1.380798   0.00002210"


def job(folder: Path, *steps: str, retries: int = 3, prologue: str = "") -> list[tuple[str, int]]:
    """Run steps as a job's script does; the lines of launches.tsv, name and status."""
    for source in plan.SHELL_FILES:
        shutil.copy(source, folder)
    tools = folder / "tools"
    tools.mkdir()
    (tools / "squeue").write_text("#!/bin/bash\n")
    (tools / "squeue").chmod(0o755)
    script = [
        ". ./steps.sh",
        f"crash_retries={retries}",
        f"figures_np={shlex.quote(netpipe.FIGURES)}",
        f"figures_out={shlex.quote(imb.FIGURES)}",
        prologue,
        *steps,
    ]
    subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"},
        check=True,
    )
    records = measured.records(folder)
    return [(name, records[name].status) for name in records]


def step(name: str, text: str, limit: int = 20) -> str:
    return f"step {name} {limit} bash -c {shlex.quote(text)}"


def dies_first(times: int, then: str = "true") -> str:
    """Shell text that dies so many times, and then does something else."""
    count = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n"
    return f'{count}; [ "$n" -ge {times} ] || exit 139; {then}'


def test_what_crashes_once_is_launched_again_and_keeps_the_files_of_both(tmp_path):
    text = "echo start $(cat n 2>/dev/null) >&2; " + dies_first(1, f"echo '{IMB_ROW}'")
    assert job(tmp_path, step("Bcast.1", text)) == [("Bcast.1~1", 139), ("Bcast.1", 0)]
    assert (tmp_path / "Bcast.1~1.err").read_text() == "start\n"
    assert (tmp_path / "Bcast.1.err").read_text() == "start 1\n"
    assert (tmp_path / "Bcast.1~1.out").read_text() == ""
    assert IMB_ROW in (tmp_path / "Bcast.1.out").read_text()


def test_there_are_no_more_attempts_than_the_site_allows(tmp_path):
    assert job(tmp_path, step("Bcast.1", "exit 139"), retries=2) == [
        ("Bcast.1~1", 139),
        ("Bcast.1~2", 139),
        ("Bcast.1", 139),
    ]


def test_a_function_that_always_crashes_is_not_tried_over_and_over(tmp_path):
    steps = [step(f"Bcast.{launch}", "exit 139") for launch in (1, 2)]
    done = job(tmp_path, *steps, step("Reduce.1", dies_first(1)), retries=1)
    assert [name for name, _ in done] == [
        "Bcast.1~1",
        "Bcast.1",
        "Bcast.2",
        "Reduce.1~1",
        "Reduce.1",
    ]


def test_no_retries_is_one_attempt(tmp_path):
    assert job(tmp_path, step("Bcast.1", "exit 139"), retries=0) == [("Bcast.1", 139)]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"echo '{IMB_ROW}'; exit 139", 139),
        (f"echo '{NETPIPE_ROW}' >Bcast.1.np; exit 139", 139),
        ("exec sleep 30", 124),
        ("trap '' TERM; while :; do sleep 0.2; done", 137),
        ("exec no-such-program", 127),
    ],
    ids=["after a figure of IMB", "after one of NetPIPE", "limit", "limit, killed", "not there"],
)
def test_what_is_no_crash_is_not_launched_again(tmp_path, text, status):
    assert job(tmp_path, step("Bcast.1", text, limit=1)) == [("Bcast.1", status)]


def test_a_rank_that_is_killed_early_has_crashed_though_its_status_is_that_of_a_limit(tmp_path):
    done = job(tmp_path, step("Bcast.1", dies_first(1).replace("139", "137")))
    assert done == [("Bcast.1~1", 137), ("Bcast.1", 0)]


def test_another_attempt_over_tcp_has_a_port_of_its_own(tmp_path):
    prologue = "address=10.0.0.1 ports=(4001)\nfree_port() { echo 4002; }"
    text = 'echo "$1 $2 $3" >>asked; ' + dies_first(1)
    launched = f'step tcp.1 20 bash -c {shlex.quote(text)} - "$address" "${{ports[0]}}" -l'
    job(tmp_path, launched, prologue=prologue)
    assert (tmp_path / "asked").read_text() == "10.0.0.1 4001 -l\n10.0.0.1 4002 -l\n"


def matches(pattern: str, path: Path) -> bool:
    return subprocess.run(["grep", "-aEqs", "-e", pattern, path], check=False).returncode == 0


NETPIPE_OUTPUTS = [
    path
    for path in [*(DATA / "netpipe" / "3.7.2").glob("*.out"), *(DATA / "jobs").rglob("*.np")]
    if path.name != "integrity.out"  # Of a mode that measures nothing.
]


@pytest.mark.parametrize("path", NETPIPE_OUTPUTS, ids=str)
def test_every_recorded_file_of_netpipe_has_figures(path):
    assert matches(netpipe.FIGURES, path)


IMB_OUTPUTS = sorted(
    path
    for folder in ("2018", "2019.6", "2021.1", "2021.11", "2021.11-intel")
    for path in (DATA / "imb" / folder).rglob("*")
    if path.is_file()
)


@pytest.mark.parametrize("path", IMB_OUTPUTS, ids=str)
def test_a_recorded_output_of_imb_has_figures_exactly_where_its_tables_have_rows(path):
    text = path.read_text(errors="replace")
    rows = re.search(r"(?m)^ +\d+ .*\d\.\d\d", text) is not None
    assert matches(imb.FIGURES, path) == rows


@pytest.mark.parametrize("name", ["imb-faulty/Bcast.1.out", "crashed-once/PingPong.1~1.out"])
def test_what_a_crash_printed_has_no_figures(name):
    assert not matches(imb.FIGURES, DATA / "jobs" / name)


def test_the_headers_of_imb_are_no_figures(tmp_path):
    whole = (DATA / "jobs" / "crashed-once" / "PingPong.1.out").read_text()
    begun = tmp_path / "begun.out"
    begun.write_text("".join(f"{line}\n" for line in whole.splitlines() if "#" in line))
    assert "#bytes" in begun.read_text()
    assert not matches(imb.FIGURES, begun)
