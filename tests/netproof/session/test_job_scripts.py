"""The scripts that Slurm runs: valid shell, nodes described first, and limits."""

from __future__ import annotations

import subprocess

import pytest
from made_partition import PARTITION, SRUN

from netproof.session import job_scripts, plan


@pytest.mark.parametrize("over_tcp", [False, True])
def test_the_script_is_valid_shell(over_tcp):
    steps = plan.netpipe_steps(1, PARTITION, SRUN, seed=1)
    text = job_scripts.script(steps, PARTITION, over_tcp=over_tcp, describe_nodes=True)
    checked = subprocess.run(
        ["bash", "-n"], input=text, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_node_says_what_it_is_before_the_first_launch():
    steps = plan.netpipe_steps(1, PARTITION, SRUN, seed=1)
    lines = job_scripts.script(steps, PARTITION, over_tcp=True, describe_nodes=True).splitlines()
    (said,) = (number for number, line in enumerate(lines) if "describe.sh 60 eno1" in line)
    assert said < min(number for number, line in enumerate(lines) if line.startswith("step "))


def test_every_step_has_the_limit_of_the_partition():
    steps = plan.netpipe_steps(1, PARTITION, SRUN, seed=1)
    text = job_scripts.script(steps, PARTITION, over_tcp=True, describe_nodes=False)
    lines = [line for line in text.splitlines() if line.startswith("step ")]
    assert [line.split()[1:3] for line in lines] == [[step.name, "60"] for step in steps]
