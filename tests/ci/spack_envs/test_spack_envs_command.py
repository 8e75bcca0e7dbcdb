"""ci/spack-envs says what is there, builds what is not, goes on where it stopped, hides nothing."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from made_programs import program

from ci.spack_envs import build, command
from netproof.site import spack

# ci/spack-envs runs as a whole, several times a test.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "spack"
ONE = "mpich-gcc"


def state(folder: Path, name: str) -> spack.BuildState:
    return spack.state(spack.table(folder).named(name), folder)


def change(path: Path) -> None:
    """Changes what a file says; a comment would not count."""
    text = path.read_text()
    if path.name == "release.yaml":
        path.write_text(text.replace("tag: v1.1.0", "tag: v1.1.1"))
    else:
        path.write_text(text + "  bzip2: {buildable: false}\n")


def test_without_a_spack_that_serves_one_sentence_says_how_to_get_it(spack_envs, stand_in):
    how = (
        "'ci/spack-envs bootstrap DIR' clones the Spack that this was made with where there is a"
        " network; source its share/spack/setup-env.sh, and run this again\n"
    )
    for version, said in (
        ("0.23.1 (2bfcc69)", "is Spack 0.23.1, which is too old"),
        ("", "says 'nothing', no version"),
    ):
        ran = spack_envs("build", STAND_IN_VERSION=version)
        assert ran.returncode == 2
        assert ran.stderr.endswith(f"{said}: {how}")
    assert stand_in() == []
    ran = spack_envs("build", PATH="/usr/bin:/bin")
    assert (ran.returncode, ran.stderr) == (2, f"spack-envs: there is no spack on PATH: {how}")


def test_list_and_check_need_no_spack(spack_envs, folder):
    ran = spack_envs("list")
    assert ran.returncode == 0
    assert "openmpi-clang   not built" in ran.stdout
    assert "intelmpi-aocc is excluded: Intel supports its MPI with its own" in ran.stdout
    assert spack_envs("check").returncode == 0
    (folder / "mpi" / "mpich.yaml").unlink()
    ran = spack_envs("check")
    assert ran.returncode == 1
    assert "FAULT matrix.yaml names mpich, and there is no mpi/mpich.yaml" in ran.stdout


def test_a_build_is_recorded_and_not_made_again_for_the_site_that_was_chosen(
    spack_envs, stand_in, folder
):
    ran = spack_envs("build", ONE, "--site", "debian12")
    assert ran.returncode == 0, ran.stderr
    assert f"{ONE}: built; log: " in ran.stdout
    record = state(folder, ONE).record
    assert record.site == "debian12"
    assert record.spack == "1.1.0 (2e907202bcc8209a6a62243aab50c179b524cc3b)"
    assert record.recipes == "d4f7c711a6a42f1c4d551c8fd10fce9a11340a81"
    netpipe = record.packages["netpipe"]
    assert (netpipe["spec"], netpipe["compiler"]) == ("netpipe@3.7.2", "gcc@12.2.0")
    assert {"~fortran", "netmod=ofi"} <= {*record.packages["mpich"]["variants"].split()}
    (row,) = [row for row in spack_envs("list").stdout.splitlines() if row.startswith(f" {ONE} ")]
    assert row.split() == [
        *(ONE, "built", record.built, "debian12", "mpich@5.0.2", "(external)", "gcc@12.2.0"),
        "tn5oggg",
    ]
    own = spack.builds(folder) / ONE
    chosen = own / "files" / "site" / "chosen.yaml"
    assert f"prefix: {ROOT}/.opt/mpich\n" in chosen.read_text()
    assert "${project}" not in chosen.read_text()
    before = stand_in()
    ran = spack_envs("build", ONE)
    assert (ran.returncode, stand_in()) == (0, before)
    assert "site debian12" in ran.stdout
    assert f"{ONE}: was built" in ran.stdout
    assert f"{ONE}: built," in spack_envs("build", ONE, "--site", "none").stdout
    assert (state(folder, ONE).record.site, chosen.exists()) == ("", False)
    spack_envs("clean", ONE)
    assert (state(folder, ONE).word, own.exists()) == ("not built", False)


def test_one_that_fails_leaves_the_others_and_is_shown_until_it_is_installed_by_the_same_lock(
    spack_envs, stand_in, folder
):
    ran = spack_envs("build", "--jobs", "2", STAND_IN_FAILS="openmpi-gcc")
    assert ran.returncode == 1
    words = [state(folder, pair.name).word for pair in spack.table(folder).build]
    assert words == ["failed", "built", "built", "built"]
    log = spack.builds(folder) / "openmpi-gcc" / ".netproof" / "build.log"
    error = "<command-line>: fatal error: missing.h: No such file or directory"
    assert f"openmpi-gcc: failed; log: {log}\n    {error}\n" in ran.stdout
    assert DATA.joinpath("failed-install.log").read_text() in log.read_text()
    assert "openmpi-gcc: failed 20" in spack_envs("list").stdout
    assert spack_envs("check", "openmpi-gcc").returncode == 1
    assert spack_envs("build", "openmpi-gcc").returncode == 0
    own = [call for call in stand_in() if call.startswith("openmpi-gcc ")]
    assert [call.split()[1] for call in own] == ["concretize", "install", "install"]


def test_packages_are_indexed_once_before_several_are_built_or_nothing_is_begun(
    spack_envs, stand_in, folder
):
    why = "no room left"
    ran = spack_envs("build", ONE, "openmpi-clang", "--jobs", "2", STAND_IN_INDEX=why)
    log = spack.builds(folder) / "index.log"
    assert (ran.returncode, ran.stderr) == (2, f"spack-envs: Error: {why} (log: {log})\n")
    assert stand_in() == ["index of packages"]
    spack_envs("build", ONE, "openmpi-clang", "--jobs", "2")
    assert [call == "index of packages" for call in stand_in()] == [True, True, *[False] * 4]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("==> Error: Failed to concretize\n1. no mpich\n", "Error: Failed to concretize"),
        ("==> Concretized 3 specs\nKilled\n", "Killed"),
        ("", "spack said nothing"),
        # Of UCX 1.13.1 from Debian's tarball, whose autogen.sh failed.
        (
            "==> Error: ProcessError: Command exited with status 1:\n"
            "189 errors found in build log:\n"
            "     29    configure.ac:31: warning: The macro `AC_GNU_SOURCE' is obsolete.\n"
            "  >> 30    configure.ac:31: You should run autoupdate.\n"
            "  >> 245    configure.ac:367: error: required file 'debian/rules.in' not found\n"
            "  >> 252    autoreconf: error: automake failed with exit status: 1\n",
            "configure.ac:367: error: required file 'debian/rules.in' not found",
        ),
    ],
)
def test_the_first_error_or_the_last_word_is_shown(tmp_path, text, error):
    log = tmp_path / "build.log"
    log.write_text(text)
    assert build.first_error(log) == error


def test_another_account_is_informed_whose_builds_they_are(folder, monkeypatch, capsys):
    def refused(*arguments: object) -> bool:
        raise PermissionError(13, "Permission denied", "spack.lock")

    monkeypatch.setattr(spack, "FOLDER", folder)
    monkeypatch.setattr(build, "clean", refused)
    assert command.main(["clean", ONE]) == 2
    assert capsys.readouterr().err == (
        f"spack-envs: spack.lock: Permission denied: only {folder.parent.owner()}, to whom"
        f" {spack.builds(folder)} belongs, can build, check and clean what is there\n"
    )


GCC, CLANG = ("openmpi-gcc", "mpich-gcc"), ("openmpi-clang", "mpich-clang")


def test_a_changed_file_makes_stale_what_is_made_of_it(spack_envs, stand_in, folder):
    spack_envs("build")
    for name, affected in (
        ("compiler/clang.yaml", CLANG),
        ("mpi/mpich.yaml", ("mpich-gcc", "mpich-clang")),
        ("common.yaml", GCC + CLANG),
        ("release.yaml", GCC + CLANG),
    ):
        before = (folder / name).read_text()
        change(folder / name)
        states = {pair.name: state(folder, pair.name) for pair in spack.table(folder).build}
        stale = {name: one.reason for name, one in states.items() if one.word == "stale"}
        assert stale == dict.fromkeys(affected, f"{name} has changed since it was built")
        assert spack_envs("check").returncode == 1
        (folder / name).write_text(before)


def test_what_was_built_and_changed_is_stale_even_while_another_builds_it(
    spack_envs, stand_in, folder
):
    spack_envs("build", ONE)
    own = spack.builds(folder) / ONE
    imb = own / "view" / "bin" / "IMB-MPI1"
    imb.rename(own / "elsewhere")
    found = state(folder, ONE)
    assert found.word == "stale"
    assert found.reason.startswith(f"there is no {imb.name} in {imb.parent} or ")
    (own / "elsewhere").rename(imb)
    (own / "spack.lock").write_text("{}")
    assert state(folder, ONE).reason == "its spack.lock is not the one that was built"
    with (own / ".netproof" / "busy").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = spack_envs("build", ONE)
    assert ran.returncode == 1
    assert f"another ci/spack-envs is building {ONE}" in ran.stdout
    assert state(folder, ONE).word == "stale"


def test_lock_files_are_kept_and_used_again_while_the_files_are_the_same(
    spack_envs, stand_in, folder, tmp_path, monkeypatch
):
    # A lock is used where its compiler is, and the recorded one has that of another machine.
    gcc = subprocess.run(["/usr/bin/gcc", "-dumpfullversion"], capture_output=True, text=True)
    monkeypatch.setenv("STAND_IN_GCC", gcc.stdout.strip())
    locks = tmp_path / "locks"
    spack_envs("build", ONE, "--locks", str(locks))
    own = spack.builds(folder) / ONE / "spack.lock"
    assert (locks / ONE / "spack.lock").read_bytes() == own.read_bytes()
    spack_envs("clean", ONE)
    spack_envs("build", ONE, "--locks", str(locks))
    assert stand_in() == [f"{ONE} concretize", f"{ONE} install", f"{ONE} install"]
    change(folder / "common.yaml")
    spack_envs("build", ONE, "--locks", str(locks))
    assert stand_in()[3:] == [f"{ONE} concretize", f"{ONE} install"]


def test_add_makes_an_environment_and_a_word_in_the_table(spack_envs, folder):
    assert spack_envs("add", "mvapich", "gcc").returncode == 0
    assert spack_envs("add", "mpich", "oneapi").returncode == 0
    names = [pair.name for pair in spack.table(folder).build]
    assert {"mvapich-gcc", "mpich-oneapi"} < set(names)
    assert spack_envs("check").returncode == 0
    before = (ROOT / "spack-envs" / "matrix.yaml").read_text().splitlines()
    after = (folder / "matrix.yaml").read_text().splitlines()
    assert [line for line in before if line not in after] == ["  mpich: [gcc, clang]"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("add intelmpi nvhpc", "intelmpi-nvhpc is excluded: Intel supports"),
        ("add mpich gcc", "mpich-gcc is in the table already"),
        ("add lam gcc", "mpi/lam.yaml; there are intelmpi, mpich, mvapich, openmpi"),
        *(
            (f"{verb} lam-pgi", "does not build 'lam-pgi'; it has openmpi-gcc, openmpi-clang")
            for verb in ("build", "check", "clean")
        ),
        (
            "build --site debain12",
            "site/debain12/packages.yaml; sites: connectx, debian12, ethernet, generic-aarch64,"
            " generic-x86_64, slingshot",
        ),
    ],
)
def test_names_that_are_none_are_refused(spack_envs, stand_in, folder, words, said):
    ran = spack_envs(*words.split())
    assert ran.returncode == 2
    assert said in ran.stderr
    assert len(spack.table(folder).build) == 4


def test_on_request_it_builds_in_a_slurm_job_and_shows_what_the_job_said(
    spack_envs, stand_in, folder, tmp_path
):
    ran = spack_envs("build", "--slurm", "", PATH=str(tmp_path))
    assert ran.returncode == 2
    assert "there is no sbatch on PATH: --slurm needs Slurm" in ran.stderr
    program(
        tmp_path / "bin" / "sbatch",
        'printf "%s\\n" "$@" >"$SBATCH_SAW"\n'
        "for a; do case $a in --wrap=*) w=${a#--wrap=} ;; --output=*) o=${a#--output=} ;; esac;"
        ' done\nbash -c "$w" >"$o" 2>&1',
    )
    saw, own = tmp_path / "saw", ["--partition=build", "--time=2:00:00"]
    words = ["build", ONE, "--jobs", "3", "--slurm", " ".join(own)]
    ran = spack_envs(*words, SBATCH_SAW=str(saw))
    assert ran.returncode == 0, ran.stderr
    assert {"--wait", "--cpus-per-task=3", *own} <= set(saw.read_text().splitlines())
    assert f"{ONE}: built; log: " in ran.stdout
    assert state(folder, ONE).word == "built"


def test_an_interrupted_build_ends_spack_and_says_so(folder, tmp_path, stand_in):
    found, ended = tmp_path / "bin" / "spack", tmp_path / "ended"
    found.write_text(
        found.read_text().replace(
            "case $verb in\n",
            f"trap 'touch {ended}; exit 1' INT\n"
            "touch $STAND_IN_CALLS.began\nwhile :; do sleep 0.1; done\ncase $verb in\n",
        )
    )
    process = subprocess.Popen(
        [ROOT / "ci" / "spack-envs", "build", ONE],
        env={
            **os.environ,
            "NETPROOF_SPACK_ENVS": str(folder),
            "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        },
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not Path(os.environ["STAND_IN_CALLS"] + ".began").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "interrupted; run it again to go on" in said
    assert ended.exists()
    assert state(folder, ONE).word != "built"
