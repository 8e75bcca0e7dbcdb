"""``alongside.sh``: an aggressor sends before a victim begins and until it ended, or says why not.

Programs stand in for srun and IMB: what is tried is the shell of the job script.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from netproof.benchmarks import registry
from netproof.experiments import load
from netproof.experiments.load import Aggression
from netproof.session import job_files
from netproof.session.job_files import StepRecord

pytestmark = pytest.mark.slow

SHELL = Path(__file__).resolve().parents[3] / "netproof" / "run" / "shell"

SENDING = """
echo '       #bytes #repetitions      t[usec]   Mbytes/sec'
while :; do
    echo '        16384            4     13000.00         1.26'
    sleep 0.1
done
"""


# The first look finds nothing, and lasts until the aggressor has printed and ended.
SLOW_LOOK = """
eval "looked_$(declare -f has_figures)"
has_figures() {
    [ ! -e looked ] || { looked_has_figures "$1" && return 0 || return 1; }
    touch looked
    wait "$aggressor_pid"
    return 1
}
"""


def ran(
    folder: Path,
    aggressor: str,
    victim: str,
    *,
    limit: int = 2,
    retries: int = 1,
    instead: str = "",
) -> None:
    """One launch of a victim alongside an aggressor, both given as shell text."""
    for name in ("steps.sh", "alongside.sh"):
        shutil.copy(SHELL / name, folder)
    (folder / "aggressor").write_text(aggressor)
    (folder / "victim").write_text(victim)
    script = f"""
    crash_retries={retries} first_figure_s=0
    figures_np='{registry.figures("np")}' figures_out='{registry.figures("out")}'
    squeue() {{ :; }}
    . ./steps.sh
    . ./alongside.sh
    {instead}
    begin_aggressor aggressor-v.1 {limit} bash aggressor && step v.1 30 bash victim
    end_aggressor {limit}
    """
    subprocess.run(["bash", "-c", script], cwd=folder, check=True, timeout=60)


def aggression(folder: Path) -> Aggression:
    (found,) = load.aggressions_of(folder).items()
    assert found[0] == "aggressor-v.1"
    return found[1]


def victim(folder: Path) -> StepRecord:
    return job_files.records(folder)["v.1"]


def test_an_aggressor_sends_from_before_the_victim_until_after_it(tmp_path):
    ran(tmp_path, SENDING, "sleep 0.5; cat aggressor-v.1.out")
    found, step = aggression(tmp_path), victim(tmp_path)
    assert found.why == ""
    assert found.began <= step.start
    assert found.ended >= step.start + step.wall_s
    # It had printed when the victim began, and did so again when that had ended.
    seen = (tmp_path / "v.1.out").read_text().count(" 16384 ")
    assert found.rows > seen >= 1


def test_an_aggressor_is_gone_when_its_record_is_written(tmp_path):
    ran(tmp_path, f"echo $$ >pid\n{SENDING}", "true")
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_an_aggressor_that_ends_while_the_victim_runs_says_so(tmp_path):
    ran(tmp_path, "echo '        16384            4     13000.00         1.26'", "sleep 0.5")
    assert aggression(tmp_path).why == "it ended before the victim did"
    assert victim(tmp_path).status == 0


def test_what_an_aggressor_printed_while_its_output_was_read_is_seen(tmp_path):
    sends_once = "echo '        16384            4     13000.00         1.26'"
    ran(tmp_path, sends_once, "sleep 0.1", retries=0, instead=SLOW_LOOK)
    assert aggression(tmp_path).why == "it ended before the victim did"
    assert victim(tmp_path).status == 0


def test_an_aggressor_that_stops_sending_says_so(tmp_path):
    ran(tmp_path, "echo '        16384            4     13000.00         1.26'; sleep 30", "true")
    assert aggression(tmp_path).why == "it sent nothing for 2 s"


@pytest.mark.parametrize(
    ("aggressor", "why"),
    [
        ("echo no such option; exit 1", "it ended before it sent anything"),
        ("sleep 30", "it sent nothing within 2 s"),
    ],
)
def test_without_an_aggressor_that_sends_no_victim_is_launched(tmp_path, aggressor, why):
    ran(tmp_path, f"echo >>tries\n{aggressor}", "true")
    assert aggression(tmp_path).why == why
    assert aggression(tmp_path).rows == 0
    assert "v.1" not in job_files.records(tmp_path)
    assert len((tmp_path / "tries").read_text().splitlines()) == 2


def test_an_aggressor_that_crashes_once_is_started_again(tmp_path):
    ran(tmp_path, f"[ -e tried ] || {{ touch tried; exit 1; }}\n{SENDING}", "sleep 0.2")
    assert aggression(tmp_path).why == ""
    assert victim(tmp_path).status == 0
