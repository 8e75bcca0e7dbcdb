"""Every way in which a night can end, with the real ReFrame and the real Slurm."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_site import SMALL, written_site
from made_testbed import done, eventually

from netproof.session import plan
from netproof.store import Store
from netproof.store.folder import MARKER

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = str(ROOT / "ci" / "nightly")

# Three jobs of some seconds, and no bound or criterion that a busy machine could fail.
SITE = """
FEW = {"gige": ["mpich", "intelmpi"], "fast-ethernet": ["mpich"]}
SHOWN = dict.fromkeys(("inversion", "jump", "dropout", "mpi_loss"), {"warn": None, "fail": None})
SHOWN |= dict.fromkeys(("envelope", "line_rate"), {"fail": None})
for partition in site_configuration["systems"][0]["partitions"]:
    partition["environs"] = FEW[partition["name"]]
    # No IMB, hence no rounds of pairs.
    partition["extras"]["coverage_percent"] = 0
    partition["extras"] |= SMALL | {"twin": []}
    partition["extras"]["criteria"] = SHOWN
for environment in site_configuration["environments"]:
    environment["features"] = [name for name in environment["features"] if name != "imb"]
    environment["extras"].setdefault("absent", {})["imb"] = "no part of this test"
"""

CONFIGURATIONS = {"gige mpich", "gige intelmpi", "fast-ethernet mpich"}


@dataclass(frozen=True)
class Place:
    """Where nights run: a folder with a site's configuration, reports, a store and pages."""

    folder: Path
    run: Callable[..., subprocess.CompletedProcess[str]]

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def command(self, *options: str, store: Path | None = None) -> list[str]:
        return [
            *(NIGHTLY, "testbed", "--store", str(store or self.store)),
            *("--to", str(self.folder / "pages"), "--junit", str(self.folder / "junit.xml")),
            *(
                "--hook",
                f"cat > {shlex.quote(str(self.folder))}/told",
                *options,
                "--",
                "-S",
                "launches=1",
            ),
        ]

    @property
    def settings(self) -> dict[str, str]:
        return {
            "RFM_CONFIG_PATH": str(self.folder / "site"),
            "RFM_REFERENCE_PREFIX": str(self.folder / "references"),
            "RFM_PREFIX": str(self.folder),
        }

    def night(self, *options: str, **more) -> subprocess.CompletedProcess[str]:
        (self.folder / "told").unlink(missing_ok=True)
        return self.run(self.folder, *self.command(*options, **more), **self.settings)

    @property
    def assignment(self) -> str:
        """What the hook was told."""
        return (self.folder / "told").read_text()

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


def furnished(folder: Path, run, further: str = "") -> Place:
    """A place in ``folder``; ``further``: what the site's file says besides."""
    written_site(folder, SITE.replace("SMALL", repr(SMALL)) + further)
    (folder / "references").mkdir()
    bounds = (ROOT / "reference-values" / "testbed.yaml").read_text()
    (folder / "references" / "testbed.yaml").write_text(
        re.sub(r"\[100, -[0-9.]+, [0-9.]+, '%'\]", "[0, null, null, '%']", bounds)
    )
    return Place(folder, run)


@pytest.fixture(scope="module")
def place(run, tmp_path_factory) -> Place:
    return furnished(tmp_path_factory.mktemp("nights"), run)


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 4 MB, less than the free space that nightly asks for."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "netproof-test", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def not_red(ran: subprocess.CompletedProcess[str], told: str) -> str:
    """How a night on the healthy testbed ended: what disturbs it may stay inconclusive, no more."""
    found = re.search(r": (PASSED|INCONCLUSIVE), ", told)
    assert found, ran.stdout + ran.stderr
    assert ran.returncode == {"PASSED": 0, "INCONCLUSIVE": 3}[found[1]]
    return found[1]


@pytest.mark.testbed
@pytest.mark.usefixtures("testbed")
class TestOnTheTestbed:
    """One night after the other, in one store."""

    @pytest.mark.nightly
    def test_a_matrix_too_big_for_a_night_is_covered_in_several(self, place):
        measured: list[str] = []
        for night in range(3):
            ran = place.night("--budget", "0.01", "--label", f"night={night}")
            word = not_red(ran, place.assignment)
            assert place.assignment.count(" deferred: NetPIPE, ") == 2
            assert place.assignment.count(" deferred: NetPIPE, never measured") == 2 - night
            (tonight,) = re.findall(r"measuring 1 of 3 jobs, .*: (.*) NetPIPE", ran.stdout)
            measured.append(tonight)
            counts = [place.suite().get(name) for name in ("tests", "failures", "skipped")]
            # A test each for the coverage of two partitions.
            assert counts == ["26", "0", "16"]
        assert set(measured) == CONFIGURATIONS
        sessions = Store(place.store).sessions("testbed")
        assert len(sessions) == 3
        latest = place.folder / "pages" / "latest"
        assert latest.resolve().name == sessions[-1].name
        page = (latest / "index.html").read_text()
        assert "What was skipped" in page
        assert "16 cases deferred or not measured" in page
        judged = place.run(
            place.folder,
            *(
                "netproof",
                "verdict",
                sessions[-1].name,
                "--store",
                str(place.store),
                "--format=json",
            ),
            **place.settings,
        )
        document = json.loads(judged.stdout)
        assert (document["verdict"] == "pass") is (word == "PASSED")
        assert document["labels"] == {"night": "2"}
        assert [len(one["cases"]) for one in document["skipped"]] == [8, 8]

    @pytest.mark.nightly
    def test_quotes_and_commands_in_names_are_text_all_the_way(self, run, tmp_path):
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
        ran = hostile.night("--budget", "0.01", "--label", f"kernel={name}")
        not_red(ran, hostile.assignment)
        assert re.search(r"[78] of 8 cases passed", hostile.assignment)
        assert hostile.suite().get("tests") == "26"
        assert name in html.unescape((folder / "pages" / "latest" / "index.html").read_text())
        judged = run(
            folder,
            *("netproof", "verdict", "newest", "--store", str(hostile.store), "--format=json"),
            **hostile.settings,
        )
        assert json.loads(judged.stdout)["labels"] == {"kernel": name}
        jobs = run(folder, "sacct", "-nXP", "-o", "jobname").stdout.split()
        assert plan.job_name(name) in jobs
        places = (tmp_path, ROOT, ROOT / "checks", Path.cwd())
        assert not [place for place in places if list(place.glob("pwned"))]
        assert not list(folder.rglob("pwned"))

    def test_a_whole_night_passes_and_one_that_overlaps_it_leaves_it_alone(self, place):
        before = len(Store(place.store).sessions("testbed")) if place.store.exists() else 0
        first = subprocess.Popen(
            place.command(), env=self.environment(place), stdout=subprocess.PIPE, text=True
        )
        takes = "about " if before else "as long as nobody knows yet: "
        line = first.stdout.readline()
        expected = f"measuring 3 of 3 jobs, which takes {takes}"
        assert line.startswith(expected), line + first.stdout.read()
        second = Place(place.folder, place.run).night()
        assert second.returncode == 2
        assert f"another night is still running, and goes on untouched: process {first.pid} on" in (
            place.assignment
        )
        rest = first.communicate()[0]
        ended = subprocess.CompletedProcess(first.args, first.returncode, rest, "")
        word = not_red(ended, place.assignment)
        assert f"{word}, 20 of 20" in place.assignment or f"{word}, 19 of 20" in place.assignment
        assert len(Store(place.store).sessions("testbed")) == before + 1

    @pytest.mark.nightly
    def test_a_partition_that_is_down_is_not_measured_and_the_others_are(self, place):
        def set_state(state: str) -> None:
            command = ("scontrol", "update", "PartitionName=gige", f"State={state}")
            assert place.run(place.folder, *command).returncode == 0

        set_state("DOWN")
        try:
            ran = place.night()
        finally:
            set_state("UP")
        assert ran.returncode == 3, ran.stdout
        # A case may have a warning, and be inconclusive on a machine that something else uses.
        passed = r"[78] of 8 cases passed(, 1 of them with a warning)?(, 1 inconclusive)?"
        assert re.search(f"NOT JUDGED, {passed}, 16 more could not be measured", place.assignment)
        assert "8 cases of gige mpich NOT MEASURED: partition gige is DOWN" in place.assignment
        messages = {one.get("message") for one in place.suite().iter("error")}
        assert "partition gige is DOWN" in messages
        assert len(messages) == 1 + ("1 inconclusive" in place.assignment)

    @pytest.mark.nightly
    def test_nodes_in_maintenance_leave_too_few(self, place):
        def set_state(*state: str) -> None:
            command = ("scontrol", "update", "NodeName=fast-ethernet-[2-4],gige-[2-4]", *state)
            assert place.run(place.folder, *command).returncode == 0

        before = place.content()
        set_state("State=DRAIN", "Reason=new cables")
        try:
            ran = place.night()
        finally:
            set_state("State=RESUME")
        assert ran.returncode == 2
        assert (
            "NOT JUDGED: nothing can be measured: partition gige has 1 usable node"
            in place.assignment
        )
        assert "gige-2 is drained (new cables)" in place.assignment
        assert place.content() == before

    @pytest.mark.nightly
    def test_a_store_that_fills_up_meanwhile_keeps_what_it_had(self, place, small_disk):
        store = small_disk / "store"
        shutil.copytree(place.store, store)
        before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
        sessions = Store(store).sessions()
        (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 12288))
        ran = place.night("--budget", "0.01", "--least-free", "0", store=store)
        assert ran.returncode == 2, ran.stdout
        assert f"NOT JUDGED: {store}: the file system is full" in place.assignment
        assert "what the store had is untouched" in place.assignment
        assert Store(store).sessions() == sessions
        assert {path: path.read_bytes() for path in before} == before

    @pytest.mark.nightly
    def test_a_reframe_that_leaves_no_report_is_not_judged(self, place):
        """On nodes that were resumed just now, and have not answered slurmctld since."""
        before = place.content()
        for state in (("State=DRAIN", "Reason=new cables"), ("State=RESUME",)):
            command = ("scontrol", "update", "NodeName=fast-ethernet-[1-4],gige-[1-4]", *state)
            assert place.run(place.folder, *command).returncode == 0
        (place.folder / "told").unlink(missing_ok=True)
        ran = place.run(place.folder, *place.command(), "-n", "NoSuchCheck", **place.settings)
        assert ran.returncode == 2
        assert "NOT JUDGED: ReFrame left no report (exit status 0); its output " in place.assignment
        assert "Ran 0/0 test case(s)" in place.assignment
        assert place.content() == before

    @pytest.mark.nightly
    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
    def test_a_killed_night_leaves_no_job_no_process_and_no_lock(self, place, how):
        before = place.content()
        (place.folder / "told").unlink(missing_ok=True)
        night = subprocess.Popen(
            place.command(), env=self.environment(place), stdout=subprocess.PIPE, text=True
        )
        eventually(lambda: self.jobs(place), "no job began")
        night.send_signal(how)
        night.communicate()
        if how == signal.SIGTERM:
            assert night.returncode == 2
            assert "NOT JUDGED: SIGTERM ended it before it was through" in place.assignment
        eventually(lambda: not self.jobs(place), "jobs are left")
        eventually(lambda: not self.reframes(place), "ReFrame is left")
        assert place.content() == before
        ran = place.night("--least-free", "1000000000")
        assert "the file system is too full" in place.assignment, ran.stdout

    @pytest.mark.nightly
    def test_a_slurmctld_that_goes_away_meanwhile_is_no_failure_of_a_network(self, place):
        before = place.content()
        night = subprocess.Popen(
            place.command("--patience", "0.1"),
            env=self.environment(place),
            stdout=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: self.jobs(place), "no job began")
        try:
            for pid in place.run(place.folder, "pgrep", "-x", "slurmctld").stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            told = night.communicate()[0]
        finally:
            self.up()
            place.run(place.folder, "scancel", "--name=netproof-testbed")
        assert night.returncode == 2, told
        assert "NOT JUDGED: slurmctld does not answer: " in place.assignment
        assert "(--patience); the night was ended." in place.assignment
        assert not self.reframes(place)
        eventually(lambda: not self.jobs(place), "jobs are left")
        # Slurm may have drained a node by now, to which the new slurmctld sent the job again.
        self.up()
        assert place.content() == before

    def up(self) -> None:
        done("up")

    def environment(self, place: Place) -> dict[str, str]:
        shown = place.run(place.folder, "env", "-0", **place.settings).stdout
        return dict(entry.split("=", 1) for entry in shown.split("\0") if entry)

    def jobs(self, place: Place) -> list[str]:
        return place.run(place.folder, "squeue", "--noheader", "--format=%i").stdout.split()

    def reframes(self, place: Place) -> list[Path]:
        """Processes of ReFrame whose output goes into the place.

        Its jobs have its environment too, and end when Slurm ends them: only the command line
        tells them apart.
        """
        found = []
        mark = f"RFM_PREFIX={place.folder}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                if mark not in (process / "environ").read_bytes().split(b"\0"):
                    continue
                if any(Path(os.fsdecode(word)).name == "reframe" for word in words):
                    found.append(process)
            except OSError:
                continue
        return found
