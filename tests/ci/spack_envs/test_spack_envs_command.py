"""ci/spack-envs says what is there, builds what is not, goes on where it stopped, hides nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

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


def test_without_spack_one_sentence_says_how_to_get_it(spack_envs):
    ran = spack_envs("build")
    assert ran.returncode == 2
    assert ran.stderr == (
        "spack-envs: there is no spack on PATH: 'ci/spack-envs bootstrap DIR' clones the Spack that"
        " this was made with where there is a network; source its share/spack/setup-env.sh, and run"
        " this again\n"
    )


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.23.1 (2bfcc69)", "is Spack 0.23.1, which is too old"), ("", "says 'nothing', no version")],
)
def test_too_old_a_spack_and_one_without_a_version_are_refused(spack_envs, stand_in, version, said):
    ran = spack_envs("build", STAND_IN_VERSION=version)
    assert ran.returncode == 2
    assert f"{said}: 'ci/spack-envs bootstrap DIR'" in ran.stderr
    assert stand_in() == []


def test_list_needs_no_spack_and_shows_what_is_excluded(spack_envs):
    ran = spack_envs("list")
    assert ran.returncode == 0
    assert "openmpi-clang   not built" in ran.stdout
    assert "intelmpi-aocc is excluded: Intel supports its MPI with its own" in ran.stdout


def test_check_needs_no_spack_where_nothing_is_built(spack_envs, folder):
    assert spack_envs("check").returncode == 0
    (folder / "mpi" / "mpich.yaml").unlink()
    ran = spack_envs("check")
    assert ran.returncode == 1
    assert "FAULT matrix.yaml names mpich, and there is no mpi/mpich.yaml" in ran.stdout


def test_a_build_is_recorded_with_specs_compiler_hash_and_variants(spack_envs, stand_in, folder):
    ran = spack_envs("build", ONE, "--site", "debian12")
    assert ran.returncode == 0, ran.stderr
    assert f"{ONE}: built; log: " in ran.stdout
    record = state(folder, ONE).record
    assert (record.site, record.spack) == (
        "debian12",
        "1.1.0 (2e907202bcc8209a6a62243aab50c179b524cc3b)",
    )
    assert record.recipes == "d4f7c711a6a42f1c4d551c8fd10fce9a11340a81"
    netpipe = record.packages["netpipe"]
    assert (netpipe["spec"], netpipe["compiler"]) == ("netpipe@3.7.2", "gcc@12.2.0")
    assert record.packages["mpich"]["hash"] == "tn5ogggmkxnwb6mwomptwf3nyamlquwm"
    assert "~fortran" in record.packages["mpich"]["variants"]
    assert "netmod=ofi" in record.packages["mpich"]["variants"]

    (row,) = [row for row in spack_envs("list").stdout.splitlines() if row.startswith(f" {ONE} ")]
    assert row.split() == [
        *(ONE, "built", record.built, "debian12", "mpich@5.0.2", "(external)", "gcc@12.2.0"),
        "tn5oggg",
    ]


def test_the_chosen_site_is_remembered_and_what_is_built_is_not_built_again(
    spack_envs, stand_in, folder
):
    spack_envs("build", ONE, "--site", "debian12")
    chosen = (spack.builds(folder) / ONE / "files" / "site" / "chosen.yaml").read_text()
    assert f"prefix: {ROOT}/.opt/mpich\n" in chosen
    assert "${project}" not in chosen
    before = stand_in()
    ran = spack_envs("build", ONE)
    assert (ran.returncode, stand_in()) == (0, before)
    assert "site debian12" in ran.stdout
    assert f"{ONE}: was built" in ran.stdout
    assert f"{ONE}: built," in spack_envs("build", ONE, "--site", "none").stdout
    assert state(folder, ONE).record.site == ""
    assert not (spack.builds(folder) / ONE / "files" / "site" / "chosen.yaml").exists()


def test_one_that_fails_leaves_the_others_and_its_first_error_is_shown(
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


def test_packages_are_indexed_once_before_several_are_built_at_a_time(spack_envs, stand_in):
    spack_envs("build", ONE, "openmpi-clang", "--jobs", "2")
    calls = stand_in()
    assert calls[0] == "index of packages"
    assert "index of packages" not in calls[1:]


def test_where_packages_cannot_be_indexed_nothing_is_begun(spack_envs, stand_in, folder):
    why = "no room left"
    ran = spack_envs("build", ONE, "openmpi-clang", "--jobs", "2", STAND_IN_INDEX=why)
    log = spack.builds(folder) / "index.log"
    assert (ran.returncode, ran.stderr) == (2, f"spack-envs: Error: {why} (log: {log})\n")
    assert stand_in() == ["index of packages"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("==> Error: Failed to concretize\n1. no mpich\n", "Error: Failed to concretize"),
        ("==> Concretized 3 specs\nKilled\n", "Killed"),
        ("", "spack said nothing"),
    ],
)
def test_where_spack_marks_no_line_the_first_error_or_the_last_word_is_shown(tmp_path, text, error):
    log = tmp_path / "build.log"
    log.write_text(text)
    assert build.first_error(log) == error


def test_an_error_goes_before_warnings_that_spack_marks_too(tmp_path):
    # Of UCX 1.13.1 from Debian's tarball, whose autogen.sh failed.
    log = tmp_path / "build.log"
    log.write_text(
        "==> Error: ProcessError: Command exited with status 1:\n"
        "189 errors found in build log:\n"
        "     29    configure.ac:31: warning: The macro `AC_GNU_SOURCE' is obsolete.\n"
        "  >> 30    configure.ac:31: You should run autoupdate.\n"
        "  >> 245    configure.ac:367: error: required file 'debian/rules.in' not found\n"
        "  >> 252    autoreconf: error: automake failed with exit status: 1\n"
    )
    error = "configure.ac:367: error: required file 'debian/rules.in' not found"
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


def test_a_failure_is_shown_until_it_is_installed_by_the_same_lock(spack_envs, stand_in):
    spack_envs("build", ONE, STAND_IN_FAILS=ONE)
    assert f"{ONE}: failed 20" in spack_envs("list").stdout
    assert spack_envs("check").returncode == 1
    assert spack_envs("build", ONE).returncode == 0
    assert stand_in() == [f"{ONE} concretize", f"{ONE} install", f"{ONE} install"]
    assert spack_envs("check").returncode == 0


def test_one_that_another_process_builds_is_left_alone(spack_envs, stand_in, folder):
    spack_envs("build", ONE)
    change(folder / "common.yaml")
    with (spack.builds(folder) / ONE / ".netproof" / "busy").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = spack_envs("build", ONE)
    assert ran.returncode == 1
    assert f"another ci/spack-envs is building {ONE}" in ran.stdout
    assert state(folder, ONE).word == "stale"


@pytest.mark.parametrize(
    ("name", "affected"),
    [
        ("common.yaml", {"openmpi-gcc", "openmpi-clang", "mpich-gcc", "mpich-clang"}),
        ("mpi/mpich.yaml", {"mpich-gcc", "mpich-clang"}),
        ("compiler/clang.yaml", {"openmpi-clang", "mpich-clang"}),
        ("release.yaml", {"openmpi-gcc", "openmpi-clang", "mpich-gcc", "mpich-clang"}),
    ],
)
def test_a_changed_file_makes_stale_what_is_made_of_it(
    spack_envs, stand_in, folder, name, affected
):
    spack_envs("build")
    change(folder / name)
    stale = {
        pair.name: state(folder, pair.name).reason
        for pair in spack.table(folder).build
        if state(folder, pair.name).word == "stale"
    }
    assert stale == dict.fromkeys(affected, f"{name} has changed since it was built")
    assert spack_envs("check").returncode == 1


def test_a_program_that_is_gone_or_a_lock_made_by_hand_makes_stale(spack_envs, stand_in, folder):
    spack_envs("build", ONE)
    program = spack.builds(folder) / ONE / "view" / "bin" / "IMB-MPI1"
    text = program.read_text()
    program.unlink()
    found = state(folder, ONE)
    assert found.word == "stale"
    assert found.reason.startswith(f"there is no {program.name} in {program.parent} or ")
    program.write_text(text)
    program.chmod(0o755)
    (spack.builds(folder) / ONE / "spack.lock").write_text("{}")
    assert state(folder, ONE).reason == "its spack.lock is not the one that was built"


def test_a_site_that_is_not_there_is_refused(spack_envs, stand_in):
    ran = spack_envs("build", "--site", "debain12")
    assert ran.returncode == 2
    assert (
        "site/debain12/packages.yaml; sites: connectx, debian12, ethernet, generic-aarch64,"
        " generic-x86_64, slingshot"
    ) in ran.stderr


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


def test_clean_leaves_nothing_of_what_was_made(spack_envs, stand_in, folder):
    spack_envs("build", ONE)
    spack_envs("clean", ONE)
    assert not (spack.builds(folder) / ONE).exists()
    assert state(folder, ONE).word == "not built"


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
    ("mpi", "compiler", "said"),
    [
        ("intelmpi", "nvhpc", "intelmpi-nvhpc is excluded: Intel supports"),
        ("mpich", "gcc", "mpich-gcc is in the table already"),
        ("lam", "gcc", "mpi/lam.yaml; there are intelmpi, mpich, mvapich, openmpi"),
    ],
)
def test_add_refuses_what_cannot_be(spack_envs, folder, mpi, compiler, said):
    ran = spack_envs("add", mpi, compiler)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert len(spack.table(folder).build) == 4


def test_a_name_that_the_table_lacks_is_refused(spack_envs):
    for verb in ("build", "check", "clean"):
        ran = spack_envs(verb, "lam-pgi")
        assert ran.returncode == 2
        assert "does not build 'lam-pgi'; it has openmpi-gcc, openmpi-clang" in ran.stderr


def test_on_request_it_builds_in_a_slurm_job_and_shows_what_the_job_said(
    spack_envs, stand_in, folder, tmp_path
):
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.write_text(
        '#!/bin/bash\nprintf "%s\\n" "$@" >"$SBATCH_SAW"\n'
        "for a; do case $a in --wrap=*) w=${a#--wrap=} ;; --output=*) o=${a#--output=} ;; esac;"
        ' done\nbash -c "$w" >"$o" 2>&1\n'
    )
    sbatch.chmod(0o755)
    saw = tmp_path / "saw"
    ran = spack_envs(
        "build", ONE, "--jobs", "3", "--slurm", "--partition=build --time=2:00:00",
        SBATCH_SAW=str(saw),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert {"--wait", "--cpus-per-task=3", "--partition=build", "--time=2:00:00"} <= set(
        saw.read_text().splitlines()
    )
    assert f"{ONE}: built; log: " in ran.stdout
    assert state(folder, ONE).word == "built"


def test_without_slurm_a_job_is_refused(spack_envs, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("dirname", "readlink"):
        (bare / name).symlink_to(shutil.which(name))
    ran = spack_envs("build", "--slurm", "", PATH=str(bare))
    assert ran.returncode == 2
    assert "there is no sbatch on PATH: --slurm needs Slurm" in ran.stderr


def test_an_interrupted_build_ends_spack_and_says_so(folder, tmp_path, stand_in):
    program = tmp_path / "bin" / "spack"
    ended = tmp_path / "ended"
    program.write_text(
        program.read_text().replace(
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
