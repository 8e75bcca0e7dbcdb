"""NetPIPE's package: its steps, run for real on the real tarball, without Spack."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from netproof.parse import netpipe

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "spack-envs/repo/spack_repo/netproof/packages/netpipe/package.py"
SHA256 = "13dac884ff52951636f651c421f5ff4a853218a95aa28a4a852402ee385a2ab8"
MPI = ROOT / ".opt" / "mpich"
CACHE = ROOT / ".cache" / "netpipe"


class Prefix(str):
    """As Spack's: an attribute is a path below it."""

    def __getattr__(self, name: str) -> Prefix:
        return Prefix(f"{self}/{name}")


class Language(types.ModuleType):
    """The part of Spack's package language that this package uses."""

    def __init__(self) -> None:
        super().__init__("spack.package")
        self.versions: dict[str, str] = {}
        self.dependencies: dict[str, object] = {}
        self.MakefilePackage = object
        self.license = lambda name: None
        self.version = lambda number, sha256: self.versions.update({number: sha256})
        self.depends_on = lambda spec, type=None: self.dependencies.update({spec: type})
        self.mkdirp = lambda path: Path(path).mkdir(parents=True, exist_ok=True)
        self.install = shutil.copy
        self.spack_cc = "cc"
        self.make = lambda *words: subprocess.run(["make", *words], check=True)


def loaded(monkeypatch: pytest.MonkeyPatch, *, new_line: bool = True) -> tuple[type, Language]:
    """The package's class, as Spack 1 or, without ``new_line``, as Spack 0.23 would load it."""
    language = Language()
    makefile = types.ModuleType("spack_repo.builtin.build_systems.makefile")
    makefile.MakefilePackage = object
    monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", language)
    monkeypatch.setitem(sys.modules, makefile.__name__, makefile if new_line else None)
    for parent in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
    names: dict[str, object] = {"__name__": "netpipe"}
    exec(compile(PACKAGE.read_text(), PACKAGE, "exec"), names)
    return names["Netpipe"], language


@pytest.fixture(scope="module")
def tarball() -> Path:
    """Upstream's tarball, which Debian's source package has in it, fetched once."""
    kept = CACHE / "netpipe_3.7.2.orig.tar.gz"
    if not kept.exists():
        (CACHE / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (CACHE / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        sources = CACHE / "sources"
        sources.mkdir(exist_ok=True)
        # Debian 12 has its sources in either format.
        etc = Path("/etc/apt")
        for path in etc.glob("sources.list.d/debian*.sources"):
            text = re.sub(r"(?m)^Types:.*$", "Types: deb-src", path.read_text())
            (sources / path.name).write_text(text)
        for path in etc.glob("sources.list"):
            text = re.sub(r"(?m)^deb\b", "deb-src", path.read_text())
            (sources / "debian.list").write_text(text)
        apt_get = [
            "apt-get", "-qq",
            "-o", "Dir::Etc::sourcelist=-", "-o", f"Dir::Etc::sourceparts={sources}",
            "-o", f"Dir::State::lists={CACHE}/lists", "-o", f"Dir::Cache={CACHE}",
        ]  # fmt: skip
        subprocess.run([*apt_get, "update"], check=True)
        fetch = [*apt_get, "source", "--download-only", "--tar-only", "netpipe"]
        subprocess.run(fetch, cwd=CACHE, check=True)
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == SHA256
    return kept


@pytest.fixture
def source(tarball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The unpacked tarball, as the current folder."""
    subprocess.run(["tar", "--extract", "--file", tarball], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "NetPIPE-3.7.2")
    return tmp_path / "NetPIPE-3.7.2"


@pytest.fixture
def installed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], object]:
    """The package after its build and install steps, MPICH being its MPI."""
    package_class, _ = loaded(monkeypatch)
    package = package_class()
    package.prefix = Prefix(tmp_path / "prefix")
    spec = {"mpi": types.SimpleNamespace(mpicc=str(MPI / "bin" / "mpicc"))}
    package.build(spec, package.prefix)
    package.install(spec, package.prefix)
    return package


@pytest.mark.parametrize("new_line", [True, False], ids=["Spack 1", "Spack 0.23"])
def test_it_loads_with_the_tarballs_checksum_and_needs_c_and_mpi(monkeypatch, new_line):
    _, language = loaded(monkeypatch, new_line=new_line)
    assert language.versions == {"3.7.2": SHA256}
    assert language.dependencies == {"c": "build", "mpi": None}


def test_its_steps_leave_both_programs(installed):
    assert sorted(path.name for path in Path(installed.prefix, "bin").iterdir()) == [
        "NPmpi",
        "NPtcp",
    ]
    linked = subprocess.run(
        ["ldd", installed.prefix.bin.NPmpi], capture_output=True, text=True, check=True
    ).stdout
    assert f"libmpi.so.12 => {MPI}/lib/" in linked


def test_its_smoke_test_measures_over_loopback(installed):
    installed.test_loopback()
    sizes = [int(line.split()[0]) for line in Path("np.out").read_text().splitlines()]
    assert sizes == list(netpipe.sizes(1, 64, 3))


def test_its_smoke_test_fails_where_the_program_does(installed, monkeypatch):
    program = Path(installed.prefix.bin.NPtcp)
    program.unlink()
    program.symlink_to("/bin/false")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(RuntimeError, match="failed 20 times"):
        installed.test_loopback()
