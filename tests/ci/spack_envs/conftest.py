"""A copy of spack-envs/ to try things on, and a stand-in for the spack program."""

from __future__ import annotations

import contextlib
import io
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ci.spack_envs import command  # noqa: E402
from netproof.site import spack  # noqa: E402

STAND_IN = """#!/bin/bash
# Does what ci/spack-envs needs of spack, with locks that the real one wrote in /srv/cluster.
[ "$1" = --version ] && { echo "${STAND_IN_VERSION-1.1.0 (2e907202)}"; exit; }
[ "$1" = location ] && { echo "/srv/${2#--}"; exit; }
shift
if [ "$1" = providers ]; then
    echo "index of packages" >>"$STAND_IN_CALLS"
    [ -z "${STAND_IN_INDEX-}" ] || { echo "==> Error: $STAND_IN_INDEX" && exit 1; }
    exit
fi
own=$2 verb=$3
echo "$(basename "$own") $verb" >>"$STAND_IN_CALLS"
case $verb in
concretize)
    case $own in
    *mpich*) lock=mpich-gcc ;;
    *) lock=openmpi-clang ;;
    esac
    # One lock for each MPI library: the compiler's name is that of the environment.
    case $own in
    *-clang) compiler=llvm ;;
    *) compiler=gcc ;;
    esac
    sed "s,/srv/cluster/,$STAND_IN_PROJECT/,; s/12[.]2[.]0/${STAND_IN_GCC-12.2.0}/g" \\
        "$STAND_IN_DATA/$lock.lock" |
        sed -E 's/"name": ?"(gcc|llvm)"/"name":"'"${STAND_IN_COMPILER-$compiler}"'"/g' \\
            >"$own/spack.lock"
    ;;
install)
    case " ${STAND_IN_FAILS-} " in
    *" $(basename "$own") "*)
        cat "$STAND_IN_DATA/failed-install.log"
        exit 1
        ;;
    esac
    mkdir -p "$own/view/bin"
    cd "$own/view/bin"
    echo '#!/bin/bash' >NPtcp
    printf '#!/bin/bash\\n[ -n "${PMI_RANK#0}${OMPI_COMM_WORLD_RANK#0}" ] || cp %s "$2"\\n' \
        "$STAND_IN_DATA/smoke-np.out" >NPmpi
    printf '#!/bin/bash\\n[ -n "${PMI_RANK#0}${OMPI_COMM_WORLD_RANK#0}" ] || cat %s\\n' \
        "$STAND_IN_DATA/smoke-imb.out" >IMB-MPI1
    chmod +x NPtcp NPmpi IMB-MPI1
    for output in "$STAND_IN_DATA"/smoke-osu_*.out; do
        case $output in
        *_latency.out | *bw.out | *_mbw_mr.out) kind=pt2pt ;;
        *) kind=collective ;;
        esac
        program=../libexec/osu-micro-benchmarks/mpi/$kind/$(basename "${output#*smoke-}" .out)
        mkdir -p "${program%/*}"
        printf '#!/bin/bash\\n[ -n "${PMI_RANK#0}${OMPI_COMM_WORLD_RANK#0}" ] || cat %s\\n' \\
            "$output" >"$program"
        chmod +x "$program"
    done
    ;;
esac
"""

STAND_IN_GIT = """#!/bin/bash
# Says of the stand-in's Spack and packages which commits they are at: the pair of release.yaml.
case $* in
*/srv/spack-root* | *"-C /spack "*)
    half=spack tag=v1.1.0
    commit=${STAND_IN_SPACK-2e907202bcc8209a6a62243aab50c179b524cc3b}
    ;;
*)
    half=packages tag=v2026.06.0
    commit=${STAND_IN_PACKAGES-d4f7c711a6a42f1c4d551c8fd10fce9a11340a81}
    ;;
esac
case $* in
*rev-parse*) printf '%s\\n' "/$half" "$commit" ;;
*describe*) echo "${STAND_IN_TAG-$tag}" ;;
*diff*) exit "${STAND_IN_CHANGED-0}" ;;
esac
"""

LDD = """#!/bin/bash
# What the stand-in installs are scripts: says of them what real programs are linked with.
case $1 in
*openmpi*/view/*) set -- "$(readlink -f /usr/bin/NPopenmpi)" ;;
*mpich*/view/*)
    set -- "$STAND_IN_PROJECT/.opt/mpich/lib/libmpi.so.12"
    printf '\\tlibmpi.so.12 => %s (0x00007f0000000000)\\n' "$1"
    ;;
esac
exec /usr/bin/ldd "$@"
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """spack-envs/ as it is in the repository, with nothing built."""
    monkeypatch.setenv("NETPROOF_SPACK_BUILDS", str(tmp_path / "builds"))
    copied = tmp_path / "spack-envs"
    shutil.copytree(ROOT / "spack-envs", copied, symlinks=True)
    return copied


@pytest.fixture
def spack_envs(folder: Path, tmp_path: Path) -> Command:
    """``spack_envs(*arguments, **settings)``: ci/spack-envs on the copy, without any spack."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        said, errors = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spack, "FOLDER", folder)
            patch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
            for name, value in settings.items():
                patch.setenv(name, value)
            before = {
                number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)
            }
            try:
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
                    status = command.main(list(arguments))
            except SystemExit as ended:
                status = ended.code
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
        return subprocess.CompletedProcess(arguments, status, said.getvalue(), errors.getvalue())

    return run


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A stand-in for spack on PATH; called, it tells which verbs it was given."""
    program = tmp_path / "bin" / "spack"
    program.parent.mkdir()
    for path, text in (
        (program, STAND_IN),
        (program.with_name("git"), STAND_IN_GIT),
        (program.with_name("ldd"), LDD),
    ):
        path.write_text(text)
        path.chmod(0o755)
    calls = tmp_path / "calls"
    calls.touch()
    monkeypatch.setenv("STAND_IN_CALLS", str(calls))
    monkeypatch.setenv("STAND_IN_PROJECT", str(ROOT))
    monkeypatch.setenv("STAND_IN_DATA", str(ROOT / "tests" / "data" / "spack"))
    return lambda: calls.read_text().splitlines()
