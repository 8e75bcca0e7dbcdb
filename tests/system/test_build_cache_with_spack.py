"""With Spack: what one store has others get, signed or not; all users read it; modules name it.

Of NetPIPE without MPI, which is built in seconds: what is tried is Spack's ways, and what
docs/spack.md says of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netproof.site import spack

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
SITE = ROOT / "spack-envs" / "site" / "debian12" / "packages.yaml"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        shutil.which("spack") is None,
        reason="there is no spack on PATH: docs/spack.md says how to get one",
    ),
]


@dataclass(frozen=True)
class Store:
    """Where one account's Spack installs to, with a scope and keys of its own."""

    place: Path

    @property
    def root(self) -> Path:
        return self.place / "store"

    def spack(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["spack", "-C", str(self.place / "scope"), *arguments],
            env={**os.environ, "SPACK_GNUPGHOME": str(self.place / "gpg")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def insist(self, *arguments: str) -> str:
        ran = self.spack(*arguments)
        assert ran.returncode == 0, f"{arguments}: {ran.stdout}"
        return ran.stdout

    def programs(self) -> list[Path]:
        return list(self.root.glob("*/netpipe-*/bin/NPtcp"))


def store(place: Path, mirrors: str = "") -> Store:
    """A store with the externals of debian12, installed so that all may read it."""
    scope = place / "scope"
    scope.mkdir(parents=True)
    repo = ROOT / "spack-envs" / "repo" / "spack_repo" / "netproof"
    permissions = "packages:\n  all:\n    permissions: {read: world, write: user}"
    text = spack.in_project(SITE.read_text(encoding="utf-8"))
    files = {
        "config": f"config:\n  install_tree:\n    root: {place}/store\n",
        "repos": f"repos:\n  netproof: {repo}\n",
        "packages": text.replace("packages:", permissions, 1),
        "modules": "modules:\n  default:\n    roots:\n"
        + "".join(f"      {kind}: {place}/modules/{kind}\n" for kind in ("tcl", "lmod")),
    }
    if mirrors:
        files["mirrors"] = f"mirrors::\n  site: {mirrors}\n"
    for name, content in files.items():
        (scope / f"{name}.yaml").write_text(content, encoding="utf-8")
    return Store(place)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that other users may enter, as no folder of pytest's."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="netproof-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def built(place: Path) -> Store:
    """The store that the others get theirs from, built from source."""
    made = store(place / "a")
    made.insist("install", "netpipe@3.7.2 ~mpi")
    return made


@pytest.fixture
def digest(built: Store) -> str:
    return "/" + built.insist("find", "--format", "{hash}", "netpipe").strip()


def push(built: Store, cache: Path, signing: list[str], digest: str) -> None:
    built.insist("buildcache", "push", *signing, "--update-index", f"file://{cache}", digest)


def test_signed_binaries_are_taken_where_their_key_is_trusted(built, place, digest):
    built.insist("gpg", "create", "netproof", "netproof@example.org")
    push(built, place / "signed", ["--key", "netproof"], digest)
    other = store(place / "b", f"{{url: 'file://{place}/signed', source: false}}")
    refused = other.spack("install", "--cache-only", digest)
    assert refused.returncode != 0
    assert "Can't check signature: No public key" in refused.stdout
    assert other.programs() == []
    built.insist("gpg", "export", str(place / "netproof.pub"))
    other.insist("gpg", "trust", str(place / "netproof.pub"))
    assert "Good signature" in other.insist("install", "--cache-only", digest)
    assert len(other.programs()) == 1


def test_unsigned_binaries_are_taken_of_a_mirror_that_says_so(built, place, digest):
    push(built, place / "unsigned", ["--unsigned"], digest)
    mirror = f"url: 'file://{place}/unsigned', source: false"
    careful = store(place / "c", f"{{{mirror}}}")
    refused = careful.spack("install", "--cache-only", digest)
    assert refused.returncode != 0
    assert "No binary found when cache-only was specified" in refused.stdout
    open_to_it = store(place / "d", f"{{{mirror}, signed: false}}")
    open_to_it.insist("install", "--cache-only", digest)
    assert len(open_to_it.programs()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_runs_what_is_installed_and_cannot_change_it(built):
    (program,) = built.programs()

    def as_nobody(command: str) -> subprocess.CompletedProcess[str]:
        # By a shell, since setpriv itself still has root's rights as it starts a program.
        user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        return subprocess.run(
            ["setpriv", *user, "sh", "-c", command], capture_output=True, text=True, check=False
        )

    assert "option requires an argument" in as_nobody(f"{program} -h").stderr
    for change in (f"touch {program.parent}/more", f"rm -f {program}", f"echo >> {program}"):
        ran = as_nobody(change)
        assert ran.returncode != 0
        assert "Permission denied" in ran.stderr


@pytest.mark.parametrize(
    ("kind", "shell", "folders"),
    [
        # Of Tcl each target has its own, and modules load those of others.
        ("tcl", "/usr/share/modules/init/bash", "linux-*"),
        ("lmod", "/usr/share/lmod/lmod/init/bash", "linux-*/Core"),
    ],
)
def test_its_modules_name_its_programs(built, kind, shell, folders):
    if not Path(shell).exists():
        pytest.skip(f"there is no {shell}: Debian's environment-modules or lmod is not installed")
    built.insist("module", kind, "refresh", "-y")
    modules = f"{built.place}/modules/{kind}/{folders}"
    command = f". {shell} && module use {modules} && module load netpipe && command -v NPtcp"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == [str(program) for program in built.programs()], ran.stderr
