"""Table, fragments, includes and environments agree, and no file says what nobody reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.spack_envs import command, consistency
from netproof.site.spack import SCHEMA, SpackFileError, load

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "spack-envs"
KINDS = {
    "matrix.yaml": "table",
    "release.yaml": "release",
    "common.yaml": "common",
    "repo/spack_repo/netproof/repo.yaml": "repo",
    "mpi/mpich.yaml": "mpi",
    "compiler/clang.yaml": "compiler",
    "site/debian12/packages.yaml": "site",
    "envs/mpich-gcc/spack.yaml": "environment",
}


def faults(folder: Path) -> str:
    return "\n".join(consistency.faults(folder))


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


@pytest.mark.slow
def test_the_files_in_the_repository_agree():
    assert faults(FOLDER) == ""


@pytest.mark.parametrize("name", KINDS)
def test_a_file_has_no_key_that_nobody_reads(name, folder):
    path = folder / name
    before = path.read_text()
    path.write_text(before + "\nsurprise: 1\n")
    with pytest.raises(SpackFileError, match="surprise"):
        load(path, KINDS[name])
    if KINDS[name] in ("mpi", "compiler", "site"):
        path.write_text(before)
        changed(path, "packages:\n", "packages:\n  surprise: {requires: ['@1']}\n")
        with pytest.raises(SpackFileError, match=r"packages\.surprise: .*'requires' was unexp"):
            load(path, KINDS[name])


@pytest.mark.parametrize("path", sorted(FOLDER.glob("mpi/*.yaml")), ids=lambda path: path.stem)
def test_each_mpi_pins_one_version_and_comments_on_its_variants(path):
    content = load(path, "mpi")
    package = content["definitions"][0]["mpi"][0]
    (requirement,) = content["packages"][package]["require"]
    assert requirement.startswith("@")
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    # The last word is the compiler.
    for variant in requirement.split()[1:-1]:
        name = variant.split("=")[0].lstrip("+~")
        assert any(name in line for line in comments), variant
    assert len(comments) >= 4


def test_the_documentation_names_every_attribute_and_every_verb():
    text = (ROOT / "docs" / "spack.md").read_text()
    for attribute in SCHEMA["$defs"]["attributes"]["properties"]:
        assert f"`{attribute}`" in text
    for verb in command.VERBS:
        assert f"| `ci/spack-envs {verb}" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            *("matrix.yaml", "mpich: [gcc, clang]", "mpich: [gcc, clang, nvhpc]"),
            "matrix.yaml builds mpich-nvhpc, and there is no envs/mpich-nvhpc",
        ),
        (
            *("matrix.yaml", "build:\n", "build:\n  intelmpi: [clang]\n"),
            "build.intelmpi: clang is excluded below it",
        ),
        ("matrix.yaml", "aocc: *intel", "aocc: ''", "excluded.intelmpi.aocc"),
        ("matrix.yaml", "build:\n", "build:\n  mpich: [gcc]\n", "duplicate key"),
        (
            *("common.yaml", "netproof_features: [imb]", "netproof_features: [omb]"),
            "netproof_features are ['omb', 'netpipe-tcp', 'netpipe-mpi', 'osu']",
        ),
        ("mpi/mpich.yaml", " %under_test", " +x", "packages.mpich.require: has no %under"),
        ("common.yaml", "%under_test", " +x", "packages.intel-mpi-benchmarks.require: has no %u"),
        (
            *("mpi/openmpi.yaml", "      netproof_pmi: pmix\n", ""),
            "packages.openmpi.package_attributes: has no netproof_pmi",
        ),
    ],
)
def test_what_does_not_agree_is_named(folder, name, old, new, said):
    changed(folder / name, old, new)
    assert said in faults(folder)


@pytest.mark.slow
def test_an_environment_that_the_table_lacks_or_of_other_fragments_is_named(folder):
    changed(folder / "matrix.yaml", "mpich: [gcc, clang]", "mpich: [gcc]")
    (folder / "compiler" / "nvhpc.yaml").unlink()
    changed(folder / "envs" / "mpich-gcc" / "spack.yaml", "compiler/gcc", "compiler/clang")
    said = faults(folder)
    assert "envs/mpich-clang is there, and matrix.yaml does not build it" in said
    assert "matrix.yaml names nvhpc, and there is no compiler/nvhpc.yaml" in said
    assert "has to be site/chosen.yaml, mpi/mpich.yaml, compiler/gcc.yaml" in said


@pytest.mark.parametrize("path", sorted(FOLDER.glob("compiler/*.yaml")), ids=lambda path: path.stem)
def test_each_compiler_binds_what_is_under_test_and_nothing_else(path):
    content = load(path, "compiler")
    entries = content["toolchains"]["under_test"]
    assert [entry["when"] for entry in entries] == ["%c", "%cxx", "%fortran"]
    for entry in entries:
        assert entry["spec"].startswith(f"{entry['when']}=")
    compilers = {entry["spec"].partition("=")[2] for entry in entries} - {"gcc"}
    assert set(content.get("packages", {})) == compilers
