"""What site-config/testbed.py says of the libraries is what is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from netproof.site import site

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environments(tmp_path, monkeypatch):
    """The environments of a copy of the file beside other wheels, as ``said`` by ompi_info."""

    def load(said: str, *wheels: str) -> dict:
        (tmp_path / "site-config").mkdir(exist_ok=True)
        copy = shutil.copy(ROOT / "site-config" / "testbed.py", tmp_path / "site-config")
        for wheel in wheels:
            place = tmp_path / ".opt" / wheel
            place.parent.mkdir(parents=True)
            place.touch()

        def run(command, **options):
            assert command == ["/usr/bin/ompi_info", "--version"]
            if not said:
                raise FileNotFoundError(command[0])
            return subprocess.CompletedProcess(command, 0, said, "")

        monkeypatch.setattr(subprocess, "run", run)
        found = site.load(Path(copy))["environments"]
        return {environment["name"]: environment for environment in found}

    return load


def library(environment):
    return environment["extras"]["mpi"], dict(environment["env_vars"]).get("OMPI_MCA_btl")


def test_debian_12_and_13_have_open_mpi_of_their_own(environments):
    said = "Open MPI v4.1.4\n\nhttp://www.open-mpi.org/community/help/\n"
    assert library(environments(said)["openmpi4"]) == ("Open MPI 4.1.4", "tcp,vader,self")
    # Debian 13's may write lines of UCX before its own.
    said = "[1795285899.196376] [vm:15130:0] sys.c:306 UCX ERROR\nOpen MPI v5.0.7\n"
    assert library(environments(said)["openmpi4"]) == ("Open MPI 5.0.7", "tcp,sm,self")


def test_a_wheel_s_version_is_that_of_the_one_installed(environments):
    found = environments("", "mpich/mpich==5.0.3", "intelmpi/impi-rt==2021.19.0")
    assert library(found["mpich"])[0] == "MPICH 5.0.3"
    assert library(found["intelmpi"])[0] == "Intel MPI 2021.19.0"


def test_what_is_not_there_has_no_version(environments):
    found = environments("")
    assert library(found["openmpi4"])[0] == "Open MPI (not installed)"
    assert library(found["mpich"])[0] == "MPICH (not installed)"
