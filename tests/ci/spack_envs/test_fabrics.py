"""Required fabrics are looked for in an MPI library's lock, and asked of the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_programs import program

from ci.spack_envs import fabrics
from ci.spack_envs import lock as locks
from ci.spack_envs.fabrics import Said
from netproof.site import spack
from netproof.site.spack import FABRICS, SpackFileError, load

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "spack"
SOURCE = DATA / "mpich-gcc-from-source.lock"
ONE = "mpich-gcc"
REASON = "InfiniBand and RoCE, which else are measured over IP and found slow"


def mpi(**changes: dict[str, str]) -> spack.Mpi:
    wanted = {"fabrics": {"verbs": REASON}, "absent": {}, **changes}
    return spack.Mpi("mpich", "MPICH", "mpich", "pmi2", (), **wanted)


def lock(folder: Path, package: str = "libfabric", **changes: object) -> Path:
    """The lock of an MPICH from source, with these changes of one of its packages."""
    content = json.loads(SOURCE.read_text())
    for node in content["concrete_specs"].values():
        if node["name"] == package:
            changes["parameters"] = node["parameters"] | changes.get("parameters", {})
            node |= changes
    path = folder / "spack.lock"
    path.write_text(json.dumps(content))
    return path


def said_by(lock: Path) -> dict[str, bool]:
    return {name: one.there for name, one in fabrics.in_lock(lock, "mpich").items()}


NONE = dict.fromkeys(FABRICS, False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, {**NONE, "tcp": True, "shm": True, "verbs": True}),
        ({"parameters": {"fabrics": ["sockets"]}}, {**NONE, "tcp": True, "shm": True}),
        (
            {"name": "ucx", "parameters": {"verbs": False}},
            {**NONE, "tcp": True, "shm": True, "ucx": True},
        ),
        # Of an external no lock tells.
        (
            {"external": {"path": "/usr", "module": None, "extra_attributes": {}}},
            {"shm": True, "ucx": False, "cuda": False, "rocm": False},
        ),
    ],
)
def test_a_lock_from_source_tells_each_fabric(tmp_path, changes, said):
    assert said_by(lock(tmp_path, **changes)) == said
    assert fabrics.in_lock(DATA / "mpich-gcc.lock", "mpich") == {}


def test_a_lock_without_verbs_is_a_fault_that_names_it(tmp_path):
    path = lock(tmp_path, parameters={"fabrics": ["rxm", "shm", "tcp", "udp"]})
    said = fabrics.in_lock(path, "mpich")
    assert fabrics.faults(ONE, mpi(), said, insist=False) == [
        f"{ONE}: verbs is missing, which is required: {REASON}; found mpich@4.0.2 with"
        " libfabric@1.13.1 fabrics=rxm,shm,tcp,udp; netproof_absent in the site's file declares it"
        " absent"
    ]


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"concrete_specs": {}, "roots": []}'])
def test_no_lock_is_an_error(tmp_path, text):
    path = tmp_path / "spack.lock"
    path.write_text(text)
    with pytest.raises(SpackFileError, match="is no lock of Spack 1 with mpich"):
        fabrics.in_lock(path, "mpich")
    path.write_text('{"roots": [{"hash": "a"}], "concrete_specs": {"a": {"dependencies": [{}]}}}')
    for read in (locks.roots, locks.built_by):
        with pytest.raises(SpackFileError, match="is no lock of Spack 1"):
            read(path)


def test_what_a_library_does_not_tell_is_missing_unless_it_is_declared_absent():
    assert fabrics.faults(ONE, mpi(), {}, insist=False) == []
    (fault,) = fabrics.faults(ONE, mpi(), {}, insist=True)
    assert fault.startswith(f"{ONE}: nothing tells whether verbs is in its MPI library")
    without = mpi(absent={"verbs": "Ethernet only"})
    assert fabrics.faults(ONE, without, {}, insist=True) == []
    (fault,) = fabrics.faults(ONE, without, {"verbs": Said(True, "by fi_info")}, insist=True)
    assert "verbs is declared absent (Ethernet only), and is there: by fi_info" in fault


def test_a_site_requires_more_and_declares_absences_of_what_is_required(folder):
    path = folder / "mpi" / "mpich.yaml"
    path.write_text(path.read_text().replace("        verbs:", "        verb:"))
    with pytest.raises(SpackFileError, match="verb"):
        load(path, "mpi")
    path.write_text(path.read_text().replace("        verb:", "        verbs:"))
    site = folder / "site" / "debian12" / "packages.yaml"
    before, combination = site.read_text(), spack.table(folder).named(ONE)
    more = "      netproof_fabrics: {cxi: Slingshot}\n      netproof_absent: {verbs: none here}\n"
    site.write_text(before + more)
    one = spack.mpi(combination, "debian12", folder)
    assert set(one.fabrics) == {"tcp", "shm", "verbs", "cxi"}
    assert one.absent == {"verbs": "none here"}
    site.write_text(before + "      netproof_absent: {efa: none here}\n")
    with pytest.raises(SpackFileError, match="efa is declared absent, and nothing requires it"):
        spack.mpi(combination, "debian12", folder)


def tools(folder: Path, **texts: str) -> Path:
    """Programs in ``folder``/bin that print these texts."""
    for name, text in texts.items():
        program(folder / "bin" / name, f"cat <<'END'\n{text}\nEND")
    return folder


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    """Makes the loader find libraries at these paths, which it makes."""

    def make(**paths: Path) -> Path:
        for path in paths.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        found = {f"lib{name}.so.1": path for name, path in paths.items()}
        monkeypatch.setattr(fabrics, "linked", lambda program: found)
        return tmp_path / "NPmpi"

    return make


def test_fi_info_or_the_files_tell_the_providers_of_the_libfabric_that_is_loaded(
    tmp_path, libraries
):
    layer = tmp_path / "libfabric"
    own = tools(tmp_path / "mpich", mpichversion=(DATA / "mpichversion.txt").read_text())
    linked = libraries(mpi=own / "lib" / "libmpi.so.1", fabric=layer / "lib" / "libfabric.so.1")
    (layer / "lib" / "libfabric").mkdir()
    (layer / "lib" / "libfabric" / "libverbs-fi.so").touch()
    found = fabrics.of_library(linked, [])
    assert found["verbs"].there
    assert "efa" not in found
    (fault,) = fabrics.faults(ONE, mpi(fabrics={"efa": "AWS"}), found, insist=True)
    assert "nothing tells whether efa is in its MPI library" in fault
    tools(layer, fi_info=(DATA / "fi_info.txt").read_text())
    found = fabrics.of_library(linked, [])
    there = {name for name, one in found.items() if one.there}
    assert there == {"tcp", "shm", "ucx", "verbs", "efa"}
    assert not found["cxi"].there
    assert f"by {layer}/bin/fi_info: " in found["verbs"].by


def test_ucx_info_or_the_files_tell_with_what_ucx_was_built(tmp_path, libraries):
    text = (DATA / "ucx_info.txt").read_text()
    own = tools(tmp_path / "mpich", mpichversion="MPICH Device:       ch4:ucx\n")
    layer = tmp_path / "ucx"
    linked = libraries(mpi=own / "lib" / "libmpi.so.1", uct=layer / "lib" / "libuct.so.0")
    assert not fabrics.of_library(linked, [])["verbs"].there
    (layer / "lib" / "ucx").mkdir()
    (layer / "lib" / "ucx" / "libuct_ib.so.0").touch()
    assert fabrics.of_library(linked, [])["verbs"].there
    tools(layer, ucx_info=text)
    found = fabrics.of_library(linked, [])
    assert (found["ucx"].there, found["tcp"].there, found["verbs"].there) == (True, True, False)
    assert "modules cma, cuda" in found["verbs"].by
    tools(layer, ucx_info=text.replace('":cuda:cma"', '":cma:ib:rdmacm"'))
    assert fabrics.of_library(linked, [])["verbs"].there
    tools(layer, ucx_info="# Transport: tcp\n")
    with pytest.raises(fabrics.NetproofError, match="ucx_info -b tells no uct_MODULES"):
        fabrics.of_library(linked, [])


def test_a_tool_that_fails_and_a_program_without_mpi_are_no_answer(tmp_path, libraries):
    with pytest.raises(fabrics.NetproofError, match="is linked with no libmpi"):
        fabrics.of_library(Path("/bin/true"), [])
    own = tools(tmp_path / "mpich", mpichversion="")
    program(own / "bin" / "mpichversion", "echo broken >&2\nexit 3")
    linked = libraries(mpi=own / "lib" / "libmpi.so.1")
    with pytest.raises(fabrics.NetproofError, match="mpichversion ended with 3: broken"):
        fabrics.of_library(linked, [])


@pytest.mark.slow
def test_a_library_that_lacks_what_is_required_is_not_built_unless_that_is_declared(
    spack_envs, stand_in, folder
):
    site = folder / "site" / "debian12" / "packages.yaml"
    site.write_text(site.read_text() + "      netproof_fabrics: {cuda: GPUs}\n")
    ran = spack_envs("build", ONE, "--site", "debian12")
    assert ran.returncode == 1
    assert "cuda is missing, which is required: GPUs" in ran.stdout
    assert spack.state(spack.table(folder).named(ONE), folder).word == "failed"
    site.write_text(site.read_text() + "      netproof_absent: {cuda: no GPU here}\n")
    assert spack_envs("build", ONE, "--site", "debian12").returncode == 0
    assert f"{ONE}: without cuda: no GPU here" in spack_envs("check", ONE).stdout
    (entry,) = [one for one in spack.environments(folder) if one["name"] == ONE]
    assert entry["extras"]["built"]["absent"] == {"cuda": "no GPU here"}
