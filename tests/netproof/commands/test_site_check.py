"""All that a new partition lacks is reported at once, before anything is measured."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

import pytest
from made_calls import called

ROOT = Path(__file__).resolve().parents[3]

THIRD_OF_EXAMPLE = """
                {
                    **_partition,
                    "name": "nexus-fc",
                    "descr": "the Nexus with flow control on",
                    "access": ["--partition=nexus-fc", "--account=netproof"],
                    "extras": {**_extras, "switch": "Nexus 9300", "interface": "eno2"},
                },
            ],
        }
    ],
    "environments\""""
THIRD_OF_TESTBED = """  gige3: {link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 4, cpus: 4}
"""
END_OF_PARTITIONS = """
            ],
        }
    ],
    "environments\""""


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Path:
    """Copies of site-config/ and reference-values/ to change, without Slurm and ReFrame."""
    for name in ("site-config", "reference-values"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path / "reference-values"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("RFM_SYSTEM", raising=False)
    return tmp_path


@pytest.fixture
def reframe(monkeypatch) -> None:
    """Let ReFrame check the site too, which takes a second."""
    monkeypatch.setenv("PATH", str(ROOT / ".venv" / "bin"))


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


checked = functools.partial(called, "site", "check")


def faults(*arguments: str) -> list[dict[str, str]]:
    status, said, why = checked(*arguments, "--format=json")
    assert status == 1, said + why
    return json.loads(said)["faults"]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["testbed", "example"])
@pytest.mark.parametrize("full", [(), ("--full",)])
def test_the_systems_that_come_with_the_project_lack_nothing(folders, system, full):
    status, said, _ = checked(system, *full)
    assert "not checked: whether ReFrame takes the file: reframe is not in PATH" in said
    assert "not checked: partitions, nodes and time limits: no Slurm here" in said
    programs = f"{'openmpi-gcc gcc/13,' if system == 'example' else 'openmpi4'}"
    assert f"not checked: what only a job sees (--job), that nodes have: {programs}" in said
    assert (status, said.splitlines()[-1]) == (0, f"{system}: ready")
    assert f"reference-values/{system}.yaml: has references for every case; in " in said
    assert "no time and no rate is bounded, so the criteria alone judge these" in said


def test_modules_that_this_shell_cannot_load_are_a_fault_where_slurm_is(folders, monkeypatch):
    monkeypatch.delenv("MODULEPATH", raising=False)
    _, said, _ = checked("example")
    said = " ".join(said.split())
    assert "not checked: modules: no Slurm here, and modules gcc/13, openmpi/4.1" in said
    (folders / "bin").mkdir()
    (folders / "bin" / "sinfo").touch(0o755)
    (fault,) = [one for one in faults("example") if one["key"] == "MODULEPATH"]
    assert (fault["file"], fault["place"]) == ("this shell", "system example")
    assert "cannot be loaded: MODULEPATH is not set" in fault["reason"]
    assert "use a login shell: bash -lc" in fault["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["example", "testbed"])
def test_another_switch_is_one_more_dictionary_and_nothing_else(
    folders, reframe, system, monkeypatch
):
    before = json.loads(checked(system, "--format=json")[1])["right"][0]
    if system == "example":
        changed(folders / "site-config" / "example.py", END_OF_PARTITIONS, THIRD_OF_EXAMPLE)
    else:
        path = folders / "topology.yaml"
        path.write_text((ROOT / "ci/testbed/topology.yaml").read_text() + THIRD_OF_TESTBED)
        monkeypatch.setenv("NETPROOF_TOPOLOGY", str(path))
    status, said, _ = checked(system, "--full")
    assert (status, said.splitlines()[-1]) == (0, f"{system}: ready")
    assert "2 partitions" in before
    assert "3 partitions" in said
    # Without Lmod it cannot say for a site with Lmod.
    assert ("ReFrame takes the configuration" in said) is (system == "testbed")
    assert checked(f"{system}:{'nexus-fc' if system == 'example' else 'gige3'}")[0] == 0


@pytest.mark.slow
def test_all_that_is_wrong_with_the_dictionary_is_reported_at_once(folders):
    third = THIRD_OF_EXAMPLE.replace('"switch": "Nexus 9300"', '"mtu": 100, "swich": "Nexus"')
    path = folders / "site-config" / "example.py"
    changed(path, END_OF_PARTITIONS, third)
    status, said, _ = checked("example")
    place = f"WRONG {path}: partition example:nexus-fc: "
    assert status == 1
    assert f"{place}extras['swich']: unknown here; did you mean 'switch'? the keys are " in said
    assert f"{place}extras['switch']: missing, expected the switch's name on site (text" in said
    assert f"{place}extras['mtu']: found 100, expected MTU in bytes (576 to 65535)" in said
    assert said.splitlines()[-1] == "example: 3 things are wrong"


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "is not there; copy "), ("NetpipeTcp: [", "no YAML"), ("NetpipeTcp: {}\n", "$index")],
)
def test_a_file_of_references_that_cannot_be_read_is_named(folders, text, reason):
    path = folders / "reference-values" / "testbed.yaml"
    path.unlink() if text is None else path.write_text(text)
    found = faults("testbed")
    assert {fault["file"] for fault in found} == {str(path)}
    assert reason in found[0]["reason"]


SITE, REFERENCES = "site-config/testbed.py", "reference-values/testbed.yaml"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "asked", "place", "key", "reason"),
    [
        (
            *(REFERENCES, "'testbed:.*'", "'testbed:gige'", "testbed"),
            *("NetpipeTcp, NetpipeMpi, ImbPingPong, ImbSendrecv, ", "testbed:fast-ethernet"),
            "is not there, so 50 cases on fast-ethernet (openmpi4, openmpi5, mpich, intelmpi) at 2,"
            " 4 ranks would fail; write testbed:fast-ethernet: alongside testbed:gige, or make one"
            " of these an expression that fits it",
        ),
        (
            *(SITE, "for count in (2, 4)", "for count in (2, 3)", "testbed:gige", "Imb", "3"),
            "is not there, so 14 cases on gige (mpich, intelmpi) at 3 ranks would fail; write 3:"
            " alongside 2, 4",
        ),
        (
            *(REFERENCES, "  rate_1_kib_mb_s: [0, null, null, MB/s]\n", "", "testbed"),
            *("NetpipeTcp", "rate_1_kib_mb_s", "add rate_1_kib_mb_s: [0, null, null, MB/s]"),
        ),
        (
            *(SITE, '"access"', '"acess"', "testbed", "system testbed", "ReFrame"),
            "'acess' was unexpected",
        ),
        (
            *(SITE, '"pmi": pmi,', '"pmi": pmi, "unusable": "not built",', "testbed"),
            *("environment mpich", "extras['unusable']", "not built"),
        ),
    ],
)
def test_a_mistake_is_named_with_what_to_write(
    folders, reframe, file, old, new, asked, place, key, reason
):
    changed(folders / file, old, new)
    found = faults(asked)
    assert [
        one
        for one in found
        if (one["key"], reason in one["reason"], one["place"].startswith(place))
        == (key, True, True)
    ], found


@pytest.mark.slow
def test_a_copied_partition_that_would_measure_the_same_switch_is_named(folders):
    third = THIRD_OF_EXAMPLE.replace(
        '"access": ["--partition=nexus-fc", "--account=netproof"],',
        '"access": ["--partition=summit", "--account=netproof"], "env_vars": ['
        '["OMPI_MCA_btl_tcp_if_include", "eno1"], ["UCX_NET_DEVICES", "eno1"]],',
    ).replace('"interface": "eno2"', '"interface": "eno1"')
    changed(folders / "site-config" / "example.py", END_OF_PARTITIONS, third)
    (fault,) = faults("example")
    assert (fault["place"], fault["key"]) == ("partition example:nexus-fc", "access")
    assert fault["reason"].startswith("is that of summit, and so are env_vars, ")
    changed(folders / "site-config" / "example.py", "Nexus 9300", "Summit X450")
    assert checked("example")[0] == 0


@pytest.mark.slow
def test_a_partition_on_which_nothing_would_be_measured_is_named(folders):
    third = THIRD_OF_EXAMPLE.replace("**_partition,", '**_partition, "environs": ["mpich-gcc"],')
    for old, new in (
        ('"mpich", "netpipe-tcp", "netpipe-mpi"]', '"mpich"]'),
        ('"absent": {', '"absent": {"netpipe-tcp": "no", "netpipe-mpi": "no",'),
        (END_OF_PARTITIONS, third),
    ):
        changed(folders / "site-config" / "example.py", old, new)
    (fault,) = faults("example:nexus-fc")
    assert (fault["place"], fault["key"]) == ("partition example:nexus-fc", "environs")
    assert "nothing would be measured" in fault["reason"]


@pytest.mark.slow
def test_the_system_is_the_one_of_this_login_node(folders, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    status, said, why = checked()
    assert (status, said) == (2, "")
    assert "no hostnames of example, testbed fit elsewhere" in why
    monkeypatch.setattr("socket.gethostname", lambda: "login3.example.org")
    assert checked()[1].splitlines()[-1] == "example: ready"
    monkeypatch.setenv("RFM_SYSTEM", "testbed:gige")
    assert checked()[1].splitlines()[-1] == "testbed: ready"
