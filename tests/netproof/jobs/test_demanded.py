"""Jobs on demand: an aggressor sends before a victim begins and until it ended, or says why not.

Programs stand in for srun and IMB.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from made_programs import program

from netproof.errors import NetproofError
from netproof.experiments import load, parameters, tails
from netproof.jobs import demanded
from netproof.jobs.job import RunningJob
from netproof.session import job_files
from netproof.session.plan import JobPlan, Step

EXTRAS = JobPlan.read(
    Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs" / "plan.json"
).extras


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("squeue", "srun"):
        program(
            tmp_path / name,
            '[ "${0##*/}" = srun ] || exit 0\nwhile [[ ${1-} == -* ]]; do\n'
            '[[ $1 != --nodelist=* ]] || export NODE=${1#*=}; shift; done\nexec "$@"',
        )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def job_of(folder: Path, steps: tuple[Step, ...] = (), **planned: object) -> RunningJob:
    extras = {**EXTRAS, "first_figure_s": 0, **planned.pop("extras", {})}
    made = RunningJob(folder, JobPlan(1, extras, rounds=(steps,), **planned))
    made.nodes = ("n1", "n2")
    (folder / job_files.LAUNCHES_FILE).write_text(f"{job_files.LAUNCHES_HEADER}\n")
    return made


SENDING = """
echo '       #bytes #repetitions      t[usec]   Mbytes/sec'
while :; do
    echo '        16384            4     13000.00         1.26'
    sleep 0.1
done
"""


def ran(folder: Path, aggressor: str, victim: str, *, limit: int = 2, retries: int = 1) -> None:
    """One launch of a victim alongside an aggressor, both given as shell text."""
    job = job_of(folder, extras={"crash_retries": retries, "step_limit_s": limit})
    demanded.beside(
        job,
        Step("v", 1, ("bash", "-c", victim)),
        Step("aggressor-v", 1, ("bash", "-c", aggressor)),
    )


def aggression(folder: Path) -> tuple[float, float, str]:
    began, ended, _, why = load.aggressions_of(folder)["aggressor-v.1"]
    return began, ended, why


def rows(folder: Path) -> int:
    return load.aggressions_of(folder)["aggressor-v.1"][2]


def test_an_aggressor_sends_from_before_the_victim_until_after_it(tmp_path):
    ran(tmp_path, f"echo $$ >pid\n{SENDING}", "sleep 0.5; cat aggressor-v.1.out")
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
    (began, ended, why), step = aggression(tmp_path), job_files.records(tmp_path)["v.1"]
    assert why == ""
    assert began <= step.start
    assert ended >= step.start + step.wall_s
    # It had printed when the victim began, and did so again when that had ended.
    seen = (tmp_path / "v.1.out").read_text().count(" 16384 ")
    assert rows(tmp_path) > seen >= 1


ROW = "echo '        16384            4     13000.00         1.26'"


@pytest.mark.parametrize(
    ("aggressor", "why", "attempts", "launched"),
    [
        (ROW, "it ended before the victim did", 1, True),
        (f"{ROW}; sleep 30", "it sent nothing for 2 s", 1, True),
        ("echo no such option; exit 1", "it ended before it sent anything", 2, False),
        ("sleep 30", "it sent nothing within 2 s", 2, False),
        # One that crashes once is started again.
        (f"[ $(wc -l <tries) = 2 ] || exit 1\n{SENDING}", "", 2, True),
    ],
)
def test_an_aggressor_says_why_it_did_not_send_throughout_and_without_any_no_victim_is_launched(
    tmp_path, aggressor, why, attempts, launched
):
    ran(tmp_path, f"echo >>tries\n{aggressor}", "sleep 0.5")
    assert aggression(tmp_path)[2] == why
    assert bool(rows(tmp_path)) is launched
    records = job_files.records(tmp_path)
    assert [one.status for name, one in records.items() if name == "v.1"] == [0] * launched
    assert len((tmp_path / "tries").read_text().splitlines()) == attempts


def test_an_output_is_watched_as_it_grows(tmp_path):
    path = tmp_path / "tail.1.out"
    over, looks = threading.Event(), []
    watcher = threading.Thread(target=demanded._watch, args=(path, looks, over))
    watcher.start()
    row = "            8            1        13.11         0.61\n"
    path.write_text(f"# header\n{row}")
    time.sleep(0.6)
    path.write_text(f"# header\n{row}{row}{row}# end\n")
    time.sleep(0.6)
    over.set()
    watcher.join()
    (first, one), *_, (last, three) = tails.watched(looks, path.read_text())
    assert (one, three) == (1, 3)
    assert 0.3 < last - first < 30


def test_an_algorithm_that_failed_once_is_launched_no_more_and_the_default_is(tmp_path):
    steps = [
        Step(name, launch, (command,), label=label)
        for launch in (1, 2, 3)
        for name, command, label in (
            ("tuning-1", "false", "ring"),
            ("tuning-2", "true", "tree"),
            ("tuning-default", "false", ""),
        )
    ]
    job = job_of(tmp_path, tuple(steps), extras={"crash_retries": 0})
    demanded.run_algorithms(job)
    counts = Counter(name.partition(".")[0] for name in job_files.records(tmp_path))
    assert counts == {"tuning-1": 1, "tuning-2": 3, "tuning-default": 3}


HOOK = """file=FOLDER/value.$NODE
case $1 in
get) cat "$file" ;;
set) [ "$3" != refused ] || exit 1; echo "$3" >"$file" ;;
esac
"""


@pytest.mark.parametrize("asked", [("9000", "", "1500"), ("9000", "refused")])
def test_a_setting_is_set_for_each_launch_and_restored_whatever_happens(tmp_path, asked):
    hook, record = tmp_path / "hook", tmp_path / "not-restored.json"
    program(hook, HOOK.replace("FOLDER", str(tmp_path)))
    for node, own in (("n1", "1500"), ("n2", "4000")):
        (tmp_path / f"value.{node}").write_text(f"{own}\n")
    show = ("bash", "-c", "cat value.n1 value.n2; cat not-restored.json >&2")
    steps = tuple(
        Step("tuning", number, show, label=value) for number, value in enumerate(asked, 1)
    )
    task = {"record": str(record), "parameter": "mtu"}
    job = job_of(tmp_path, steps, task="setting", asked=task, extras={"tuning_hook": [str(hook)]})
    if "refused" in asked:
        with pytest.raises(NetproofError, match="set mtu refused"):
            demanded.run_setting(job)
    else:
        demanded.run_setting(job)
        assert (tmp_path / "tuning.2.out").read_text() == "1500\n4000\n"
    assert (tmp_path / "tuning.1.out").read_text() == "9000\n9000\n"
    own = '[["n1", "mtu", "1500"], ["n2", "mtu", "4000"]]\n'
    assert (tmp_path / "tuning.1.err").read_text() == own
    assert (tmp_path / parameters.OWN_FILE).read_text() == own
    assert not record.exists()
    # What an earlier job did not restore is not set again.
    record.write_text(own)
    with pytest.raises(NetproofError, match="an earlier sweep ended before everything"):
        demanded.run_setting(job)
    assert record.exists()
    values = [(tmp_path / f"value.{node}").read_text() for node in ("n1", "n2")]
    assert values == ["1500\n", "4000\n"]
