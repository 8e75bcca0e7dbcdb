"""The files of spack-envs/ become ReFrame environments; one that is not built stays and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from netproof.site import spack
from netproof.site.spack import Combination, SpackFileError

ROOT = Path(__file__).resolve().parents[3]
MPICH = Combination("mpich", "gcc")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of spack-envs/, with nothing built."""
    monkeypatch.setenv(spack.BUILDS, str(tmp_path / "builds"))
    copied = tmp_path / "spack-envs"
    shutil.copytree(ROOT / "spack-envs", copied, symlinks=True)
    return copied


def build(folder: Path, combination: Combination = MPICH, site: str = "debian12") -> None:
    """Leaves what a build of the combination would leave."""
    own = spack.build_folder(combination, folder)
    (own / spack.RECORDS).mkdir(parents=True, exist_ok=True)
    (own / "spack.lock").write_text("{}")
    for program in spack.benchmarks(folder)["programs"]:
        path = own / "view" / "bin" / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    package = spack.mpi(combination, site, folder).package
    record = {
        "site": site,
        "built": "2026-11-21T01:21:18+00:00",
        "seconds": 62.0,
        "spack": "1.1.0 (2e907202bcc8209a6a62243aab50c179b524cc3b)",
        "recipes": "d4f7c711a6a42f1c4d551c8fd10fce9a11340a81",
        "lock": spack.sha256(own / "spack.lock"),
        "files": spack.inputs(combination, site, folder),
        "packages": {
            package: {
                "version": "5.0.2",
                "spec": f"{package}@5.0.2",
                "compiler": "gcc@12.2.0",
                "hash": "tn5oggg",
                "variants": "netmod=ofi",
            }
        },
    }
    (own / spack.RECORDS / "built.json").write_text(json.dumps(record))


def environment(folder: Path, name: str = MPICH.name) -> dict:
    (found,) = [entry for entry in spack.environments(folder) if entry["name"] == name]
    return found


@pytest.mark.slow
def test_a_package_may_have_its_programs_in_other_folders_of_the_view(folder):
    path = folder / "common.yaml"
    text = path.read_text()
    programs = "netproof_programs: [NPtcp, NPmpi]"
    assert programs in text
    text = text[: text.index("  osu-micro-benchmarks:\n")]
    path.write_text(text.replace(programs, f"{programs}\n      netproof_folders: [libexec/np]"))
    build(folder)
    view = spack.view(MPICH, folder)
    (view / "libexec" / "np").mkdir(parents=True)
    (view / "bin" / "NPtcp").rename(view / "libexec" / "np" / "NPtcp")
    assert spack.state(MPICH, folder).word == "built"
    assert ["PATH", f"{view}/bin:{view}/libexec/np:$PATH"] in environment(folder)["env_vars"]
    (view / "libexec" / "np" / "NPtcp").unlink()
    said = spack.state(MPICH, folder).reason
    assert said == f"there is no NPtcp in {view}/bin or {view}/libexec/np any more"


def test_each_combination_is_an_environment_with_kind_pmi_and_features_of_the_files(folder):
    path = folder / "mpi" / "mpich.yaml"
    path.write_text(
        path.read_text()
        .replace("netproof_pmi: pmi2", "netproof_pmi: pmix")
        .replace("netproof_kind: mpich", "netproof_kind: other")
    )
    names = [entry["name"] for entry in spack.environments(folder)]
    assert names == ["openmpi-gcc", "openmpi-clang", "mpich-gcc", "mpich-clang"]
    found = environment(folder)
    assert found["extras"]["pmi"] == "pmix"
    assert found["features"] == ["mpi", "other", "imb", "netpipe-tcp", "netpipe-mpi", "osu"]


@pytest.mark.slow
def test_one_that_is_built_is_found_through_its_view_and_shows_its_build(folder):
    build(folder)
    found = environment(folder)
    view = f"{spack.builds(folder)}/mpich-gcc/view"
    omb = f"{view}/libexec/osu-micro-benchmarks/mpi"
    assert found["env_vars"][0] == [
        "PATH",
        f"{view}/bin:{omb}/pt2pt:{omb}/collective:$PATH",
    ]
    assert found["extras"]["unusable"] == ""
    assert found["extras"]["mpi"] == "MPICH 5.0.2"
    built = found["extras"]["built"]
    assert (built["spack"], built["site"], built["when"]) == (
        "1.1.0 (2e907202bcc8209a6a62243aab50c179b524cc3b)",
        "debian12",
        "2026-11-21T01:21:18+00:00",
    )
    assert set(built["packages"]["mpich"]) >= {"spec", "compiler", "hash", "variants"}


@pytest.mark.slow
def test_the_sites_run_time_variables_are_the_environments_and_a_path_in_the_project_absolute(
    folder,
):
    path = folder / "site" / "debian12" / "packages.yaml"
    path.write_text(path.read_text().replace("FI_PROVIDER: tcp", "FI_PROVIDER_PATH: ${project}/x"))
    build(folder)
    assert ["FI_PROVIDER_PATH", f"{ROOT}/x"] in environment(folder)["env_vars"]
    openmpi = Combination("openmpi", "gcc")
    build(folder, openmpi)
    found = environment(folder, openmpi.name)
    assert ["OMPI_MCA_mpi_yield_when_idle", "1"] in found["env_vars"]


def test_one_that_is_not_built_stays_and_says_what_to_do(folder):
    found = environment(folder)
    assert {"imb", "netpipe-tcp", "netpipe-mpi", "osu"} <= set(found["features"])
    assert found["extras"]["unusable"] == (
        "the Spack environment mpich-gcc is not built: it has not been built;"
        " run ci/spack-envs build mpich-gcc"
    )


@pytest.mark.slow
def test_one_that_is_stale_stays_and_names_the_file_that_changed(folder):
    build(folder)
    path = folder / "compiler" / "gcc.yaml"
    path.write_text(path.read_text() + "# a comment does not count\n")
    assert environment(folder)["extras"]["unusable"] == ""
    path.write_text(path.read_text() + "  bzip2: {buildable: false}\n")
    found = environment(folder)
    assert "imb" in found["features"]
    assert found["extras"]["unusable"].startswith(
        "the Spack environment mpich-gcc is stale: compiler/gcc.yaml has changed since"
    )


def test_an_external_that_is_gone_makes_stale(folder):
    build(folder)
    path = spack.build_folder(MPICH, folder) / spack.RECORDS / "built.json"
    record = json.loads(path.read_text())
    record["packages"]["mpich"]["external"] = "/no/such/prefix"
    path.write_text(json.dumps(record))
    assert spack.state(MPICH, folder).reason == "mpich@5.0.2 is not in /no/such/prefix any more"


@pytest.mark.parametrize("text", ["", "{", "{}", '{"site": 2}'])
def test_what_is_no_record_is_an_error(folder, text):
    build(folder)
    (spack.build_folder(MPICH, folder) / spack.RECORDS / "built.json").write_text(text)
    with pytest.raises(
        SpackFileError, match=r"is no record of a build, .*; run ci/spack-envs clean"
    ):
        spack.environments(folder)


def test_an_include_from_elsewhere_is_an_error(folder):
    build(folder)
    path = folder / "envs" / "mpich-gcc" / "spack.yaml"
    path.write_text(path.read_text().replace("../../common.yaml", "/etc/hostname"))
    with pytest.raises(SpackFileError, match="include: /etc/hostname is not in "):
        spack.environments(folder)


def test_attempted_are_those_that_a_build_was_begun_of(folder):
    assert spack.attempted(folder) == []
    build(folder)
    (spack.builds(folder) / "openmpi-clang" / spack.RECORDS).mkdir(parents=True)
    assert spack.attempted(folder) == ["openmpi-clang", "mpich-gcc"]
