"""All that a new partition lacks is reported at once, before anything is measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.benchmarks import registry
from netproof.commands.cli import app

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


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)])
def with_reframe(request, folders) -> bool:
    """Whether ReFrame checks the site too."""
    if request.param:
        request.getfixturevalue("reframe")
    return request.param


def insist_on_reframes_word(said: str, system: str, *, asked: bool) -> None:
    """Check that ReFrame takes the site; without Lmod it cannot say for one with Lmod."""
    not_asked = "not checked: whether ReFrame takes the file: reframe is not in PATH"
    assert (not_asked in said) is not asked
    if asked and system == "testbed":
        assert "ReFrame takes the configuration" in said


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def checked(*arguments: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(app, ["site", "check", *arguments])
    return ran.exit_code, ran.stdout, ran.stderr


def faults(*arguments: str) -> list[dict[str, str]]:
    status, said, why = checked(*arguments, "--format=json")
    assert status == 1, said + why
    return json.loads(said)["faults"]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["testbed", "example"])
@pytest.mark.parametrize("full", [(), ("--full",)])
def test_the_systems_that_come_with_the_project_lack_nothing(folders, with_reframe, system, full):
    status, said, _ = checked(system, *full)
    insist_on_reframes_word(said, system, asked=with_reframe)
    assert (status, said.splitlines()[-1]) == (0, f"{system}: ready")
    assert f"reference-values/{system}.yaml: has references for every case; in " in said
    assert "no time and no rate is bounded, so the criteria alone judge these" in said


@pytest.mark.slow
def test_what_cannot_be_seen_from_here_is_said(folders):
    _, said, _ = checked("example")
    assert "not checked: partitions, nodes and time limits: no Slurm here" in said
    assert "not checked: what only a job sees (--job), that nodes have: openmpi-gcc gcc/13," in said
    assert f", {', '.join(registry.PROGRAMS)}; mpich-gcc " in " ".join(said.split())


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


def third_of_testbed(folders: Path, monkeypatch) -> None:
    """Add one switch to the topology."""
    path = folders / "topology.yaml"
    path.write_text((ROOT / "ci/testbed/topology.yaml").read_text() + THIRD_OF_TESTBED)
    monkeypatch.setenv("NETPROOF_TOPOLOGY", str(path))


@pytest.mark.slow
@pytest.mark.parametrize("system", ["example", "testbed"])
def test_another_switch_is_one_more_dictionary_and_nothing_else(
    folders, with_reframe, system, monkeypatch
):
    before = json.loads(checked(system, "--format=json")[1])["right"][0]
    if system == "example":
        changed(folders / "site-config" / "example.py", END_OF_PARTITIONS, THIRD_OF_EXAMPLE)
    else:
        third_of_testbed(folders, monkeypatch)
    status, said, _ = checked(system, "--full")
    assert (status, said.splitlines()[-1]) == (0, f"{system}: ready")
    assert "2 partitions" in before
    assert "3 partitions" in said
    insist_on_reframes_word(said, system, asked=with_reframe)
    assert checked(f"{system}:{'nexus-fc' if system == 'example' else 'gige3'}")[0] == 0


@pytest.mark.slow
def test_all_that_is_wrong_with_the_dictionary_is_told_at_once(folders):
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


@pytest.mark.slow
def test_a_partition_without_references_is_named_with_what_to_write(folders, monkeypatch):
    changed(
        folders / "reference-values" / "testbed.yaml", "'testbed:.*'", "'testbed:(gige|fast.*)'"
    )
    third_of_testbed(folders, monkeypatch)
    (fault,) = faults("testbed")
    assert fault["file"] == str(folders / "reference-values" / "testbed.yaml")
    assert fault["place"].startswith("NetpipeTcp, NetpipeMpi, ImbPingPong, ImbSendrecv, ")
    assert fault["key"] == "testbed:gige3"
    assert fault["reason"] == (
        "is not there, so 50 cases on gige3 (openmpi4, openmpi5, mpich, intelmpi) at 2, 4 ranks"
        " would fail; write testbed:gige3: alongside testbed:(gige|fast.*), or make one of these an"
        " expression that fits it"
    )


@pytest.mark.slow
def test_a_rank_count_without_references_is_named(folders):
    changed(folders / "site-config" / "testbed.py", "for count in (2, 4)", "for count in (2, 3)")
    (fault,) = faults("testbed:gige")
    assert (fault["key"], fault["reason"]) == (
        "3",
        "is not there, so 14 cases on gige (mpich, intelmpi) at 3 ranks would fail; write 3:"
        " alongside 2, 4",
    )


@pytest.mark.slow
def test_a_landmark_without_an_entry_is_named_for_the_functions_that_define_it(folders):
    path = folders / "reference-values" / "testbed.yaml"
    changed(path, "  rate_1_kib_mb_s: [0, null, null, MB/s]\n", "")
    found = faults("testbed")
    assert [fault["place"] for fault in found] == [
        *("NetpipeTcp", "NetpipeMpi", "ImbPingPong", "ImbSendrecv")
    ]
    assert {fault["key"] for fault in found} == {"rate_1_kib_mb_s"}
    assert "add rate_1_kib_mb_s: [0, null, null, MB/s]" in found[0]["reason"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "is not there; copy "), ("NetpipeTcp: [", "no YAML"), ("NetpipeTcp: {}\n", "$index")],
)
def test_a_file_of_references_that_is_none_is_told(folders, text, reason):
    path = folders / "reference-values" / "testbed.yaml"
    path.unlink() if text is None else path.write_text(text)
    found = faults("testbed")
    assert {fault["file"] for fault in found} == {str(path)}
    assert reason in found[0]["reason"]


@pytest.mark.slow
def test_a_copied_partition_that_would_measure_the_same_switch_is_told(folders):
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
def test_what_only_reframe_knows_of_is_refused_in_its_words(folders, reframe):
    changed(folders / "site-config" / "testbed.py", '"access"', '"acess"')
    found = faults("testbed")
    assert (found[-1]["place"], found[-1]["key"]) == ("system testbed", "ReFrame")
    assert "'acess' was unexpected" in found[-1]["reason"]


@pytest.mark.slow
def test_an_environment_that_cannot_be_used_is_told(folders):
    changed(
        folders / "site-config" / "testbed.py",
        '"pmi": pmi,',
        '"pmi": pmi, "unusable": "not built" if name == "mpich" else "",',
    )
    (fault,) = faults("testbed")
    assert (fault["place"], fault["key"], fault["reason"]) == (
        *("environment mpich", "extras['unusable']", "not built"),
    )


@pytest.mark.slow
def test_a_partition_on_which_nothing_would_be_measured_is_told(folders):
    changed(
        folders / "site-config" / "example.py",
        '"features": ["mpi", "mpich", "netpipe-tcp", "netpipe-mpi"]',
        '"features": ["mpi", "mpich"]',
    )
    changed(
        folders / "site-config" / "example.py",
        '"absent": {',
        '"absent": {"netpipe-tcp": "no", "netpipe-mpi": "no",',
    )
    third = THIRD_OF_EXAMPLE.replace("**_partition,", '**_partition, "environs": ["mpich-gcc"],')
    changed(folders / "site-config" / "example.py", END_OF_PARTITIONS, third)
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
