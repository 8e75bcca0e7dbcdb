"""Ways in which a night can end, with the real ReFrame and the real Slurm."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_site import NETPIPE_ALONE, SMALL, written_site
from made_testbed import done, eventually, started_with

from netproof.session import plan
from netproof.store import Store
from netproof.store.folder import MARKER

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = str(ROOT / "ci" / "nightly")

# Three jobs of some seconds, which nothing disturbs.
SITE = f"""
FEW = {{"gige": ["mpich", "intelmpi"]}}
{NETPIPE_ALONE}
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"] |= {SMALL} | {{"twin": []}}
    partition["extras"]["criteria"]["disturbance"] = {{"others": 1, "steal": 1}}
"""


@dataclass(frozen=True)
class Place:
    """Where nights run: a folder with a site's configuration, reports, a store and pages."""

    folder: Path
    started: Callable[..., subprocess.CompletedProcess[str]]

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self.started(
            self.folder,
            *command,
            RFM_CONFIG_PATH=str(self.folder / "site"),
            RFM_REFERENCE_PREFIX=str(self.folder / "references"),
            RFM_PREFIX=str(self.folder),
        )

    def command(self, *options: str) -> list[str]:
        return [
            *(NIGHTLY, "testbed", "--store", str(self.store)),
            *("--to", str(self.folder / "pages"), "--junit", str(self.folder / "junit.xml")),
            *("--hook", f"cat > {shlex.quote(str(self.folder))}/heard"),
            *(*options, "--", "-S", "launches=1"),
        ]

    def night(self, *options: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "heard").unlink(missing_ok=True)
        return self.run(*self.command(*options))

    def begun(self, *options: str) -> subprocess.Popen[str]:
        """Begin a night in the background."""
        (self.folder / "heard").unlink(missing_ok=True)
        shown = self.run("env", "-0").stdout
        environment = dict(entry.split("=", 1) for entry in shown.split("\0") if entry)
        return subprocess.Popen(
            self.command(*options), env=environment, stdout=subprocess.PIPE, text=True
        )

    @property
    def assignment(self) -> str:
        """Standard input of the hook."""
        return (self.folder / "heard").read_text()

    def suite(self) -> ElementTree.Element:
        return ElementTree.parse(self.folder / "junit.xml").getroot()[0]

    def content(self) -> dict[str, bytes]:
        """Every file of the store's sessions and of the pages."""
        return {
            str(path): path.read_bytes()
            for top in (self.store, self.folder / "pages")
            for path in top.rglob("*")
            if path.is_file() and path.name != MARKER
        }

    def jobs(self) -> list[str]:
        return self.run("squeue", "--noheader", "--format=%i").stdout.split()

    def reframes(self) -> list[str]:
        """Processes of ReFrame whose output goes into the place.

        Its jobs have its environment too, and end when Slurm ends them.
        """
        several = started_with(f"RFM_PREFIX={self.folder}")
        return [one for one in several if any(Path(word).name == "reframe" for word in one.split())]


def furnished(folder: Path, run, further: str = "") -> Place:
    """A place in ``folder``; ``further``: what the site's file says besides."""
    written_site(folder, SITE + further)
    (folder / "references").mkdir()
    bounds = (ROOT / "reference-values" / "testbed.yaml").read_text()
    (folder / "references" / "testbed.yaml").write_text(
        re.sub(r"\[100, -[0-9.]+, [0-9.]+, '%'\]", "[0, null, null, '%']", bounds)
    )
    return Place(folder, run)


@pytest.fixture(scope="module")
def place(run, tmp_path_factory) -> Place:
    """One night comes after the other in its store."""
    return furnished(tmp_path_factory.mktemp("nights"), run)


def not_red(status: int, said: str, heard: str) -> str:
    """How a night on the healthy testbed ended: what disturbs it may stay inconclusive, no more."""
    found = re.search(r": (PASSED|INCONCLUSIVE), ", heard)
    assert found, said
    assert status == {"PASSED": 0, "INCONCLUSIVE": 3}[found[1]]
    return found[1]


def test_a_whole_night_passes_and_one_that_overlaps_it_leaves_it_alone(place):
    first = place.begun()
    line = first.stdout.readline()
    expected = "measuring 3 of 3 jobs, which takes as long as nobody knows yet: "
    assert line.startswith(expected), line + first.stdout.read()
    second = place.night()
    assert second.returncode == 2
    assert f"another night is still running, and goes on untouched: process {first.pid} on" in (
        place.assignment
    )
    said = first.communicate()[0]
    word = not_red(first.returncode, said, place.assignment)
    assert re.search(f"{word}, (20|1[0-9]) of 20 cases passed", place.assignment)
    (session,) = Store(place.store).sessions("testbed")
    assert (place.folder / "pages" / "latest").resolve().name == session.name


@pytest.mark.nightly
def test_a_short_night_measures_a_part_and_hostile_names_are_text_all_the_way(run, tmp_path):
    """Switch, contention domain, MPI, label, and the folders of everything."""
    folder = tmp_path / "n;i&g(h)#t"
    folder.mkdir()
    name = "Summit 'X450' \"a\" $(touch pwned) `touch pwned` # ; | %s \\"
    hostile = furnished(
        folder,
        run,
        f"for partition in site_configuration['systems'][0]['partitions']:\n"
        f"    partition['extras'] |= dict.fromkeys(('switch', 'contention_domain'), {name!r})\n"
        f"for environment in site_configuration['environments']:\n"
        f"    environment['extras']['mpi'] = {name!r}\n",
    )
    # Before anything was measured, a budget defers nothing.
    for deferred in (0, 2):
        ran = hostile.night("--budget", "0.01", "--label", f"kernel={name}")
        not_red(ran.returncode, ran.stdout + ran.stderr, hostile.assignment)
        assert hostile.assignment.count(" deferred: NetPIPE, last measured 2") == deferred
    assert re.search(r"[78] of 8 cases passed", hostile.assignment)
    counts = [hostile.suite().get(count) for count in ("tests", "failures", "skipped")]
    # A test each for the coverage of two partitions.
    assert counts == ["22", "0", "12"]
    page = html.unescape((folder / "pages" / "latest" / "index.html").read_text())
    assert name in page
    assert "12 cases deferred or not measured" in page
    asked = ("netproof", "verdict", "newest", "--store", str(hostile.store), "--format=json")
    document = json.loads(hostile.run(*asked).stdout)
    assert document["labels"] == {"kernel": name}
    assert sorted(len(one["cases"]) for one in document["skipped"]) == [4, 8]
    assert plan.job_name(name) in hostile.run("sacct", "-nXP", "-o", "jobname").stdout.split()
    places = (tmp_path, ROOT, ROOT / "checks", Path.cwd())
    assert not [place for place in places if list(place.glob("pwned"))]
    assert not list(folder.rglob("pwned"))


@pytest.fixture
def too_few(place):
    """Nodes of gige in maintenance."""

    def set_state(*state: str) -> None:
        command = ("scontrol", "update", "NodeName=gige-[2-4]", *state)
        assert place.run(*command).returncode == 0

    set_state("State=DRAIN", "Reason=new cables")
    yield
    set_state("State=RESUME")


@pytest.mark.nightly
def test_a_partition_with_too_few_nodes_is_not_measured_and_the_others_are(place, too_few):
    ran = place.night()
    assert ran.returncode == 3, ran.stdout
    # A case may have a warning, and be inconclusive on a machine that something else uses.
    passed = r"[78] of 8 cases passed(, 1 of them with a warning)?(, 1 inconclusive)?"
    assert re.search(f"NOT JUDGED, {passed}, 12 more could not be measured", place.assignment)
    reason = "partition gige has 1 usable node"
    assert f"8 cases of gige mpich NOT MEASURED: {reason}" in place.assignment
    assert "gige-2 is drained (new cables)" in place.assignment
    assert any(reason in one.get("message") for one in place.suite().iter("error"))


@pytest.mark.nightly
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_night_leaves_no_job_no_process_and_no_lock(place, how):
    before = place.content()
    night = place.begun()
    eventually(place.jobs, "no job began")
    night.send_signal(how)
    night.communicate()
    if how == signal.SIGTERM:
        assert night.returncode == 2
        assert "NOT JUDGED: SIGTERM ended it before it was through" in place.assignment
    eventually(lambda: not place.jobs(), "jobs are left")
    eventually(lambda: not place.reframes(), "ReFrame is left")
    assert place.content() == before
    ran = place.night("--least-free", "1000000000")
    assert "the file system is too full" in place.assignment, ran.stdout


@pytest.mark.nightly
def test_a_slurmctld_that_goes_away_meanwhile_is_no_failure_of_a_network(place):
    before = place.content()
    night = place.begun("--patience", "0.1")
    eventually(place.jobs, "no job began")
    try:
        for pid in place.run("pgrep", "-x", "slurmctld").stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        said = night.communicate()[0]
    finally:
        done("up")
        place.run("scancel", "--name=netproof-testbed")
    assert night.returncode == 2, said
    assert "NOT JUDGED: slurmctld does not answer: " in place.assignment
    assert "(--patience); the night was ended." in place.assignment
    assert not place.reframes()
    eventually(lambda: not place.jobs(), "jobs are left")
    # Slurm may have drained a node by now, to which the new slurmctld sent the job again.
    done("up")
    assert place.content() == before
