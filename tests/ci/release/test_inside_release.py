"""Programs in another release, and their view of the machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from made_machine import ROOT, as_root

from ci.release import containing, entering, registries


def test_what_is_tested_on_the_other_release_is_there():
    for pattern in entering.TESTS.split():
        assert list(ROOT.glob(pattern)), pattern
    assert f"pytest -q --numprocesses auto {entering.TESTS}" in entering.WITHIN


@as_root
def test_a_node_s_namespaces_can_be_made_inside_and_given_folders_are_only_read(tmp_path):
    for name in ("proc", "sys", "dev", "run", "usr"):
        (tmp_path / name).mkdir()
    for name in ("bin", "lib", "lib64"):
        (tmp_path / name).symlink_to(f"usr/{name}")
    within = """set -e
    unshare --net --uts --mount --ipc true
    unshare --user --map-root-user true
    test ! -e /srv
    touch /run/here /dev/shm/here /written
    ! touch /usr/here 2>/dev/null
    """
    enter = ["sh", "-c", entering.ENTER, "sh", str(tmp_path), "/usr"]
    environment = registries.passed_on(os.environ)
    assert containing.contained(enter, {**environment, "WITHIN": within}) == 0
    assert (tmp_path / "written").exists()
    assert not list((tmp_path / "run").iterdir())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


@as_root
def test_what_runs_in_the_release_has_no_way_back_to_the_machine_s_files(tmp_path):
    for name in ("proc", "sys", "dev", "run", "usr"):
        (tmp_path / name).mkdir()
    for name in ("bin", "lib", "lib64"):
        (tmp_path / name).symlink_to(f"usr/{name}")
    within = "! nsenter --mount=/proc/self/ns/mnt test -e /srv"
    enter = ["sh", "-c", entering.ENTER, "sh", str(tmp_path), "/usr"]
    environment = {**registries.passed_on(os.environ), "WITHIN": within}
    assert containing.contained(enter, environment) == 0


@pytest.fixture
def inside(tmp_path):
    """Runs what runs in the release, where what it starts are stand-ins: status, and what ran."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "activate").write_text("")
    script = entering.WITHIN.replace(f"cd /{entering.CHECKOUT}", f"cd {tmp_path}")
    started = tmp_path / "started"

    def run(
        all_tests: str, pytest: int = 0, quickstart: int = 0, only_prepare: str = ""
    ) -> tuple[int, list[str]]:
        started.write_text("")
        for name, status in {
            "ci/setup": 0,
            ".venv/bin/pip": 0,
            "dpkg": 0,
            "dpkg-query": 0,
            "pytest": pytest,
            "ci/quickstart": quickstart,
        }.items():
            path = tmp_path / name
            note = f'echo "{path.name} $*" >>{started}'
            path.write_text(f"#!/bin/bash\n{note}\nexit {status}\n")
            path.chmod(0o755)
        environment = registries.passed_on(os.environ) | {"ALL_TESTS": all_tests}
        environment["ONLY_PREPARE"] = only_prepare
        environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
        ran = subprocess.run(["bash", "-c", script], env=environment)
        words = ("setup", "pytest", "quickstart")
        return ran.returncode, [
            line for line in started.read_text().splitlines() if line.startswith(words)
        ]

    return run


@as_root
def test_all_tests_are_run_before_the_smoke_run_where_that_is_asked_for(inside):
    tests, smoke = "pytest -q -m not testbed", "quickstart --smoke"
    assert inside("yes") == (0, ["setup --test", tests, smoke])
    assert inside("yes", quickstart=100) == (100, ["setup --test", tests, smoke])


@as_root
def test_what_is_only_prepared_is_not_tried(inside):
    assert inside("", only_prepare="yes") == (0, ["setup "])


@as_root
@pytest.mark.parametrize("status", [1, 2, 5])
def test_one_that_fails_there_fails_the_try_and_nothing_is_measured(inside, status):
    assert inside("yes", pytest=status) == (1, ["setup --test", "pytest -q -m not testbed"])
    status, ran = inside("", pytest=status)
    assert (status, [line.split()[0] for line in ran]) == (1, ["setup", "pytest"])


@as_root
def test_else_only_what_reads_and_keeps_is_tested(inside):
    status, ran = inside("")
    assert status == 0
    assert ran[0] == "setup "
    assert ran[1].startswith("pytest -q --numprocesses auto tests/netproof/benchmarks/test_parse_")
    assert ran[2] == "quickstart --smoke"


@as_root
def test_a_release_that_cannot_be_entered_is_no_failed_network(tmp_path):
    enter = ["sh", "-c", entering.ENTER, "sh", str(tmp_path / "none")]
    environment = {**registries.passed_on(os.environ), "WITHIN": "exit 1"}
    assert containing.contained(enter, environment) == 2
