"""What a node is gets said whole, and a session whose nodes differ says so."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from netproof.session import plan, provenance
from netproof.session.provenance import NodeInJob, ProvenanceError, Software
from netproof.store import Store, questions
from netproof.verdict.keeping import ingest

ROOT = Path(__file__).resolve().parents[3]
NODES = ROOT / "tests" / "data" / "nodes"
PASSED = ROOT / "tests" / "data" / "sessions" / "passed.json"
SCRIPT = ROOT / "netproof" / "run" / "shell" / "node.sh"
GIGE = tuple(f"gige-{n}" for n in range(1, 5))
SOFTWARE = Software("0.1.0", "4.10.4", "slurm 22.05.8", "abc", False, (), {})


def in_job(folder: str, jobid: str = "7", environment: str = "mpich") -> list[NodeInJob]:
    """The recorded nodes of a job."""
    return [
        NodeInJob("gige", environment, f"job {jobid}", jobid, provenance.read_node(path))
        for path in sorted((NODES / folder).glob(provenance.NODE_FILES))
    ]


def described(interface: str, folder: Path, **environment: str) -> provenance.Node:
    """This machine as the script describes it."""
    done = subprocess.run(
        ["bash", SCRIPT, interface],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    assert done.stderr == ""
    path = folder / "node.this.txt"
    path.write_text(done.stdout)
    return provenance.read_node(path)


def test_the_script_is_copied_into_every_job():
    assert SCRIPT in plan.SHELL_FILES


def test_a_node_of_the_testbed_is_known_in_all_that_a_veth_has():
    node = provenance.read_node(NODES / "same" / "node.gige-1.txt")
    assert (node.node, node.interface, node.driver) == ("gige-1", "eth1", "veth")
    assert (node.mtu, node.link_mbit_s) == (1500, 10000)
    assert node.kernel
    assert node.cpu
    assert node.cpus
    assert node.offloads["tcp-segmentation-offload"] in ("on", "off")
    assert node.sysctls["net.ipv4.tcp_congestion_control"]
    for name in ("NPtcp", "NPmpi", "IMB-MPI1"):
        assert name in node.programs
    digest = hashlib.sha256(Path("/usr/bin/NPtcp").read_bytes()).hexdigest()
    assert len(node.programs["NPtcp"].split()[0]) == len(digest)
    assert any("libmpi" in name for name in node.programs)
    assert set(node.absent) >= {"firmware", "bus", "nic"}


def test_this_machine_is_described_whole_and_what_it_lacks_has_a_reason(tmp_path):
    node = described("lo", tmp_path)
    assert node.node == os.uname().nodename
    assert node.mtu == int(Path("/sys/class/net/lo/mtu").read_text())
    assert node.architecture == os.uname().machine
    plain = {field.name for field in dataclasses.fields(node)} - {"absent"}
    for name in plain:
        reasons = [key for key in node.absent if key == name or key.startswith(f"{name}.")]
        assert getattr(node, name) or reasons, name
    assert all(reason.strip() for reason in node.absent.values())


def test_slurms_name_of_the_node_is_the_one_that_counts(tmp_path):
    assert described("lo", tmp_path, SLURMD_NODENAME="node-17").node == "node-17"


def test_without_ethtool_the_rest_is_still_known(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "uname", "sed", "getconf", "ip", "cat", "sha256sum", "readlink", "ldd"):
        (tools / name).symlink_to(shutil.which(name))
    script = SCRIPT.read_text().replace("PATH=$PATH:/usr/sbin:/sbin", f"PATH={tools}")
    changed = tmp_path / "node.sh"
    changed.write_text(script)
    done = subprocess.run(["bash", changed, "lo"], capture_output=True, text=True, check=True)
    path = tmp_path / "node.this.txt"
    path.write_text(done.stdout)
    node = provenance.read_node(path)
    assert node.driver is None
    assert node.offloads == {}
    assert node.absent["driver"] == node.absent["offloads"] == "ethtool is not installed"
    assert node.mtu
    assert node.sysctls


def test_an_interface_that_is_not_there_is_no_crash(tmp_path):
    node = described("eth99", tmp_path)
    assert node.mtu is None
    assert "eth99" in node.absent["mtu"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[1:], ":1: the header"),
        (lambda lines: lines[:-1], "is cut short, 'end' is missing"),
        (lambda lines: [], ":1: the header"),
        (lambda lines: [line for line in lines if not line.startswith("mtu")], "mtu is missing"),
        (lambda lines: [line for line in lines if not line.startswith("node\t")], "node is miss"),
        (lambda lines: [*lines[:3], "mtu", *lines[3:]], ":4: 'mtu' is no key with a value"),
        (lambda lines: [*lines[:3], "colour\tred", *lines[3:]], ":4: 'colour' is not known"),
        (lambda lines: [*lines[:-1], "mtu\t9000", "end"], "is the second of its key"),
        (
            lambda lines: ["mtu\tlarge" if line.startswith("mtu") else line for line in lines],
            "'large' is no whole number",
        ),
        (
            lambda lines: [line for line in lines if not line.startswith("offloads.")],
            "offloads is missing, and no line says why",
        ),
    ],
)
def test_a_nodes_file_that_is_not_whole_is_refused(tmp_path, change, reason):
    lines = (NODES / "same" / "node.gige-1.txt").read_text().splitlines()
    path = tmp_path / "node.gige-1.txt"
    path.write_text("".join(f"{line}\n" for line in change(lines)))
    with pytest.raises(ProvenanceError) as raised:
        provenance.read_node(path)
    assert str(raised.value).startswith(str(path))
    assert reason in str(raised.value)


def test_the_step_asks_every_node_once_and_does_not_end_the_script(tmp_path):
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/bash\nprintf "%s\\n" "$@" >asked\nexit 1\n')
    srun.chmod(0o755)
    script = f"#!/bin/bash\n{provenance.node_step('eth 1')}\necho on it goes\n"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NUM_NODES": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "on it goes\n"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1"} <= set(asked)
    assert asked[-3:] == ["bash", "./node.sh", "eth 1"]


JOB_NODES = """netproof-job-nodes\t1
jobid\t17
count\t2
node\tgige-2
node\tgige-1
end
"""


def test_a_jobs_own_nodes_are_in_slurms_order(tmp_path):
    (tmp_path / "job_nodes.txt").write_text(JOB_NODES)
    assert provenance.nodes_of_job(tmp_path, "17") == ("gige-2", "gige-1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, ": cannot be read: "),
        ("", ":1: the header"),
        (JOB_NODES.removesuffix("end\n"), ":5: is cut short"),
        (JOB_NODES.removesuffix("\n"), ":6: is cut short"),
        (JOB_NODES.replace("17", "18"), ":2: is of job 18 and not of 17"),
        (JOB_NODES.replace("node\tgige-1\n", ""), ":3: Slurm gave 2 nodes, and those listed are"),
        (JOB_NODES.replace("gige-1", "gige-2"), ":3: Slurm gave 2 nodes"),
        (JOB_NODES.replace("node\tgige-1", "node\t"), ":5: 'node\\t' is no node with a value"),
        (JOB_NODES.replace("jobid", "job"), ":2: 'job\\t17' is no jobid"),
        (JOB_NODES.split("node\t")[0] + "end\n", ": names no node"),
    ],
)
def test_a_jobs_own_list_that_is_not_whole_is_refused(tmp_path, text, reason):
    path = tmp_path / "job_nodes.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ProvenanceError) as raised:
        provenance.nodes_of_job(tmp_path, "17")
    assert str(raised.value).startswith(f"{path}{reason}")


def listed_by_job(folder: Path, scontrol: str) -> subprocess.CompletedProcess[str]:
    """The list that a job's script leaves in ``folder`` where ``scontrol`` is that shell text."""
    tool = folder / "scontrol"
    tool.write_text(f"#!/bin/bash\n{scontrol}\n")
    tool.chmod(0o755)
    shutil.copy(SCRIPT.parent / "steps.sh", folder)
    job = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "gige-[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    return subprocess.run(
        [
            "bash",
            "-c",
            '. ./steps.sh; job_nodes job_nodes.txt || exit 3; trap - EXIT; echo "${nodes[1]}"',
        ],
        cwd=folder,
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", **job},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_asks_slurm_from_within(tmp_path):
    done = listed_by_job(
        tmp_path, '[ "$*" = "show hostnames gige-[1-2]" ] && printf "gige-%s\\n" 1 2'
    )
    assert (done.returncode, done.stdout) == (0, "gige-2\n")
    assert provenance.nodes_of_job(tmp_path, "17") == ("gige-1", "gige-2")


def test_a_job_whose_slurm_does_not_answer_ends_and_leaves_a_list_that_is_cut_short(tmp_path):
    assert listed_by_job(tmp_path, "exit 1").returncode == 3
    with pytest.raises(ProvenanceError, match="is cut short"):
        provenance.nodes_of_job(tmp_path, "17")


def test_a_job_whose_node_left_no_file_is_refused(tmp_path):
    shutil.copy(NODES / "same" / "node.gige-1.txt", tmp_path)
    with pytest.raises(ProvenanceError, match=r"no node\.\*\.txt of gige-2"):
        provenance.of_job(tmp_path, ["gige-1", "gige-2"], SOFTWARE)
    with pytest.raises(ProvenanceError, match="gige-1 wrote a file and is not of the job"):
        provenance.of_job(tmp_path, [], SOFTWARE)


def test_nodes_that_are_alike_differ_in_nothing():
    assert provenance.differences(in_job("same")) == ()


def test_nodes_that_differ_say_in_what():
    assert provenance.differences(in_job("differ")) == (
        "gige: mtu: 1500 (gige-1, gige-3, gige-4); 1400 (gige-2)",
    )


def test_an_offload_or_a_sysctl_of_one_node_is_a_difference():
    first, second, *_ = in_job("same")
    offloads = {**second.node.offloads, "generic-receive-offload": "on"}
    sysctls = {**second.node.sysctls, "net.ipv4.tcp_sack": "0"}
    other = dataclasses.replace(second.node, offloads=offloads, sysctls=sysctls)
    assert provenance.differences([first, dataclasses.replace(second, node=other)]) == (
        "gige: offloads generic-receive-offload: off (gige-1); on (gige-2)",
        "gige: sysctls net.ipv4.tcp_sack: 0 (gige-2); 1 (gige-1)",
    )


def test_a_node_that_changes_between_jobs_says_so():
    told = provenance.differences([*in_job("same", "7")[1:2], *in_job("differ", "8")[1:2]])
    assert told == ("gige: mtu: 1400 (gige-2); 1500 (gige-2)",)


def test_what_one_node_cannot_tell_is_a_difference():
    first, second, *_ = in_job("same")
    silent = dataclasses.replace(second, node=dataclasses.replace(second.node, driver=None))
    assert provenance.differences([first, silent]) == (
        "gige: driver: not known (gige-2); veth (gige-1)",
    )


def test_programs_may_differ_between_environments_and_not_within_one():
    first, second, *_ = in_job("same")
    other = dataclasses.replace(
        second, node=dataclasses.replace(second.node, programs={"NPtcp": "other /usr/bin/NPtcp"})
    )
    assert any(
        sentence.startswith("gige mpich: programs NPtcp: ")
        for sentence in provenance.differences([first, other])
    )
    elsewhere = dataclasses.replace(other, environment="openmpi4")
    assert provenance.differences([first, elsewhere]) == ()


def test_two_runs_differ_in_what_their_nodes_have_not_alike_and_in_nothing_else():
    before = in_job("same")
    assert provenance.between(before, in_job("same", "8", "intelmpi")) == {}
    after = [
        dataclasses.replace(
            found,
            node=dataclasses.replace(
                found.node,
                kernel="6.6.1",
                sysctls={**found.node.sysctls, "net.core.rmem_max": "1"},
                # A program elsewhere is the same one; firmware that only one run knows is no
                # difference.
                programs={
                    name: f"{value.split()[0]} /elsewhere"
                    for name, value in found.node.programs.items()
                },
                firmware="5.2",
            ),
        )
        for found in before
    ]
    node = before[0].node
    assert provenance.between(before, after) == {
        "kernel": ((node.kernel,), ("6.6.1",)),
        "sysctls net.core.rmem_max": ((node.sysctls["net.core.rmem_max"],), ("1",)),
    }


def test_software_tells_versions_revision_and_what_the_files_held(tmp_path):
    stated = provenance.software(ROOT / "site-config", ROOT / "reference-values", ROOT)
    assert stated.netproof == "0.1.0"
    assert stated.reframe.startswith("4.10.")
    assert len(stated.git_revision) == 40
    by_path = {Path(file.path).name: file for file in stated.files}
    text = (ROOT / "reference-values" / "testbed.yaml").read_bytes()
    assert by_path["testbed.yaml"].sha256 == hashlib.sha256(text).hexdigest()
    assert by_path["testbed.yaml"].kind == provenance.KIND_REFERENCES
    assert by_path["testbed.py"].kind == provenance.KIND_CONFIGURATION


def test_a_checkout_without_git_has_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    stated = provenance.software(ROOT / "site-config", ROOT / "reference-values", tmp_path)
    assert stated.git_revision is stated.git_changed is None
    assert "not a git repository" in stated.absent["git_revision"]
    with pytest.raises(ProvenanceError, match=r"has no \*\.py to tell the configuration from"):
        provenance.software(tmp_path, ROOT / "reference-values", ROOT)


def report(tmp_path: Path, folder: str) -> Path:
    """The recorded session with the recorded nodes, as its first job would have left them."""
    document = json.loads(PASSED.read_text())
    first, second = (
        test for test in document["runs"][0]["testcases"] if not test.get("netproof_case")
    )
    ran_with = provenance.software(ROOT / "site-config", ROOT / "reference-values", ROOT)
    first[provenance.KEY] = provenance.of_job(NODES / folder, GIGE, ran_with)
    second[provenance.KEY] = {}
    path = tmp_path / "run-0.json"
    path.write_text(json.dumps(document))
    return path


def test_a_stored_session_has_its_nodes_and_says_in_what_they_differ(tmp_path):
    store = Store.create(tmp_path / "store")
    done = ingest(store, report(tmp_path, "differ"))
    assert "gige: mtu: 1500 (gige-1, gige-3, gige-4); 1400 (gige-2)" in done.differences
    with questions.connect(store) as connection:
        nodes = connection.sql("select node, mtu, driver from nodes order by node").fetchall()
        (header,) = connection.sql(
            "select len(differences), git_revision, len(files) from sessions"
        ).fetchall()
    assert nodes == [(name, 1400 if name == "gige-2" else 1500, "veth") for name in GIGE]
    assert header[0] == len(done.differences) > 0
    assert len(header[1]) == 40
    assert header[2] > 0
    assert any(key.startswith("nodes of NetpipeJob") for key in done.unknown)


@pytest.mark.parametrize("folder", ["same", "differ", None])
def test_the_store_has_the_provenance_that_the_report_has(tmp_path, folder):
    path = PASSED if folder is None else report(tmp_path, folder)
    store = Store.create(tmp_path / "store")
    there = questions.provenance(store, ingest(store, path).stored)
    assert there == provenance.of_report(json.loads(path.read_text()), str(path))
    assert (there.software is None) == (folder is None)


def test_a_record_that_is_not_whole_is_refused(tmp_path):
    path = report(tmp_path, "same")
    document = json.loads(path.read_text())
    jobs = [test for test in document["runs"][0]["testcases"] if test.get(provenance.KEY)]
    jobs[0][provenance.KEY]["nodes"][0].pop("mtu")
    with pytest.raises(ProvenanceError, match=r"netproof_provenance: is not whole: .*mtu"):
        provenance.of_report(document, "run-0.json")
    jobs[0][provenance.KEY]["format"] = 2
    with pytest.raises(ProvenanceError, match="is of format 2"):
        provenance.of_report(document, "run-0.json")


def test_jobs_that_ran_with_other_files_say_so(tmp_path):
    document = json.loads(report(tmp_path, "same").read_text())
    first, second = (test for test in document["runs"][0]["testcases"] if provenance.KEY in test)
    second[provenance.KEY] = json.loads(json.dumps(first[provenance.KEY]))
    second[provenance.KEY]["software"]["git_revision"] = "0" * 40
    gathered = provenance.of_report(document, "run-0.json")
    assert gathered.differences == (
        f"{second['display_name']} ran with other versions, revision or files than"
        f" {first['display_name']}",
    )
