"""An algorithm that failed once is not tried again, and the others are."""

from __future__ import annotations

import subprocess
from pathlib import Path

SHELL = Path(__file__).resolve().parents[3] / "netproof" / "run" / "shell"


def test_what_failed_once_is_left_and_what_did_not_goes_on(tmp_path):
    script = f"""
    SLURM_JOB_ID=1 crash_retries=1 first_figure_s=0 figures_np=^x figures_out=^x
    squeue() {{ :; }}
    . {SHELL}/steps.sh
    trap - EXIT
    . {SHELL}/trying.sh
    for number in 1 2 3; do
        try tuning-1.$number 5 false
        try tuning-2.$number 5 echo x
    done
    """
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    lines = (tmp_path / "launches.tsv").read_text().splitlines()[1:]
    steps = [(line.split("\t")[0], line.split("\t")[3]) for line in lines]
    assert steps == [
        ("tuning-1.1~1", "1"),
        ("tuning-1.1", "1"),
        ("tuning-2.1", "0"),
        ("tuning-2.2", "0"),
        ("tuning-2.3", "0"),
    ]
