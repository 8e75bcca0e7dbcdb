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

from netproof.benchmarks import netpipe

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
        self.dependencies: dict[str, tuple[object, object]] = {}
        self.variants: dict[str, bool] = {}
        self.license = lambda name: None
        self.version = lambda number, sha256: self.versions.update({number: sha256})
        self.variant = lambda name, default, description: self.variants.update({name: default})
        self.depends_on = lambda spec, type=None, when=None: self.dependencies.update(
            {spec: (type, when)}
        )
        self.mkdirp = lambda path: Path(path).mkdir(parents=True, exist_ok=True)
        self.install = shutil.copy
        self.spack_cc = "cc"
        self.make = lambda *words: subprocess.run(["make", *words], check=True)


class Spec(dict):
    """A concrete spec of the package, with or without MPI."""

    def __init__(self, *, mpi: bool) -> None:
        mpicc = str(MPI / "bin" / "mpicc")
        super().__init__({"mpi": types.SimpleNamespace(mpicc=mpicc)} if mpi else {})

    def satisfies(self, constraint: str) -> bool:
        assert constraint == "+mpi"
        return "mpi" in self


def loaded(monkeypatch: pytest.MonkeyPatch) -> tuple[type, Language]:
    """The package's class, as Spack would load it."""
    language = Language()
    makefile = types.ModuleType("spack_repo.builtin.build_systems.makefile")
    makefile.MakefilePackage = object
    monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", language)
    monkeypatch.setitem(sys.modules, makefile.__name__, makefile)
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
def install(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Runs its build and install steps, MPICH being its MPI; the package."""

    def run(*, mpi: bool = True) -> object:
        package = loaded(monkeypatch)[0]()
        package.prefix, package.spec = Prefix(tmp_path / "prefix"), Spec(mpi=mpi)
        package.build(package.spec, package.prefix)
        package.install(package.spec, package.prefix)
        return package

    return run


@pytest.fixture
def installed(install: Callable[..., object]) -> object:
    """The package after its steps."""
    return install()


def programs(package: object) -> list[str]:
    return sorted(path.name for path in Path(package.prefix, "bin").iterdir())


def test_it_loads_with_the_tarballs_checksum_and_needs_c_and_mpi(monkeypatch):
    _, language = loaded(monkeypatch)
    assert language.versions == {"3.7.2": SHA256}
    assert language.variants == {"mpi": True}
    assert language.dependencies == {"c": ("build", None), "mpi": (None, "+mpi")}


def test_it_has_the_header_of_spacks_own_packages():
    assert PACKAGE.read_text().startswith(
        "# Copyright Spack Project Developers. See COPYRIGHT file for details.\n#\n"
        "# SPDX-License-Identifier: (Apache-2.0 OR MIT)\n\nimport "
    )


@pytest.mark.slow
def test_its_licence_is_what_the_source_says(source):
    """The GNU General Public License; no file names its version, and no copy is there."""
    texts = [path.read_text("latin-1") for path in source.glob("src/*.[ch]")]
    said = [text for text in texts if "GNU General Public License" in text]
    assert len(said) > 10
    assert not any("version 2" in text.lower() for text in said)
    assert not [path for path in source.rglob("*") if path.name in ("COPYING", "LICENSE")]
    assert 'license("GPL-1.0-or-later")' in PACKAGE.read_text()


@pytest.mark.slow
def test_its_steps_leave_both_programs(installed):
    assert programs(installed) == ["NPmpi", "NPtcp"]
    linked = subprocess.run(
        ["ldd", installed.prefix.bin.NPmpi], capture_output=True, text=True, check=True
    ).stdout
    assert f"libmpi.so.12 => {MPI}/lib/" in linked


@pytest.mark.slow
def test_without_mpi_it_is_the_one_over_tcp(install):
    assert programs(install(mpi=False)) == ["NPtcp"]


@pytest.mark.slow
def test_its_smoke_test_measures_over_loopback(installed):
    installed.test_loopback()
    sizes = [int(line.split()[0]) for line in Path("np.out").read_text().splitlines()]
    assert sizes == list(netpipe.sizes(1, 64, 3))


@pytest.mark.slow
def test_its_smoke_test_fails_where_the_program_does(installed, monkeypatch):
    program = Path(installed.prefix.bin.NPtcp)
    program.unlink()
    program.symlink_to("/bin/false")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(RuntimeError, match="failed 20 times"):
        installed.test_loopback()
