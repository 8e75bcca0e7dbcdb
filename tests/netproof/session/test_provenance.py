"""A node is described whole, and a session whose nodes differ says so."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest
from made_nodes import GIGE, SOFTWARE, changed, in_job
from made_programs import program

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.session import node_facts, provenance, session
from netproof.session.node_facts import Node
from netproof.site import slurm
from netproof.site.slurm import SlurmPartition

ROOT = Path(__file__).resolve().parents[3]
NODES = ROOT / "tests" / "data" / "nodes"
PASSED = ROOT / "tests" / "data" / "sessions" / "passed.json"
SCRIPT = ROOT / "netproof" / "run" / "shell" / "node.py"


def described(interface: str, folder: Path, script: Path = SCRIPT, **environment: str) -> Node:
    """This machine as the script describes it."""
    done = subprocess.run(
        [sys.executable, "-IS", script, "node", interface, *registry.PROGRAMS],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"SLURMD_NODENAME": "this"} | environment,
    )
    assert done.stderr == ""
    path = folder / "node.this.txt"
    path.write_text(done.stdout)
    return node_facts.read_node(path)


@pytest.mark.slow
def test_this_machine_is_described_whole_and_what_it_lacks_has_a_reason(tmp_path):
    node = described("lo", tmp_path)
    assert node.node == "this"
    assert node.mtu == int(Path("/sys/class/net/lo/mtu").read_text())
    assert node.architecture == os.uname().machine
    of_the_job = {
        name for name in node_facts.NAMES if name.startswith(("clock_ahead", "path", "tcp"))
    }
    plain = {*node_facts.NAMES} - {"absent"} - of_the_job
    for name in plain:
        assert getattr(node, name) or node_facts.reasons(node.absent, name), name
    assert all(reason.strip() for reason in node.absent.values())


@pytest.mark.slow
@pytest.mark.parametrize("interface", ["lo", "eth99"])
def test_without_ethtool_or_the_interface_the_rest_is_still_known(tmp_path, interface):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "ip", "ldd"):
        (tools / name).symlink_to(shutil.which(name))
    script = tmp_path / "node.py"
    script.write_text(SCRIPT.read_text().replace(":/usr/sbin:/sbin", ""))
    node = described(interface, tmp_path, script, PATH=str(tools))
    for name in ("driver", "offloads", "duplex", "autonegotiation", "rings", "pci"):
        assert node.absent[name] == "ethtool is not installed"
    assert node.sysctls
    if interface == "lo":
        assert node.mtu
    else:
        assert "eth99" in node.absent["mtu"]
        assert "eth99" in node.absent["state"]


def with_program(folder: Path, name: str, text: str) -> str:
    """PATH with a program of that name in front, which is this shell text."""
    return f"{program(folder / 'programs' / name, text).parent}:{os.environ['PATH']}"


@pytest.mark.slow
def test_rings_and_the_link_are_read_as_ethtool_prints_them(tmp_path):
    """In the words of ethtool 6.1's sources, ``netlink/rings.c`` and ``settings.c``."""
    path = with_program(
        tmp_path,
        "ethtool",
        r"""case $1 in
        -g) printf '%b\n' "Ring parameters for lo:" "Pre-set maximums:" "RX:\t\t8192" \
            "RX Mini:\tn/a" "Current hardware settings:" "RX:\t\t1024" ;;
        lo) printf '\t%s\n' "Speed: 25000Mb/s" "Duplex: Half" "Auto-negotiation: on" ;;
        esac""",
    )
    node = described("lo", tmp_path, PATH=path)
    assert node.rings == {"RX maximum": "8192", "RX Mini maximum": "n/a", "RX": "1024"}
    assert (node.link_mbit_s, node.duplex, node.autonegotiation) == (25000, "Half", "on")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "prints", "offset_s"),
    [
        # The fields of chrony's `tracking` and of ntpq's `rv`, by their manuals.
        (
            "chronyc",
            "A29F,10.0.0.1,4,1.7,-0.000123456,0,0,1.1,0,0.1,0.01,0.001,64.5,Normal",
            -123e-6,
        ),
        ("chronyc", "7F7F,,0,0,0.0,0,0,0,0,0,1,1,0,Not synchronised", None),
        ("ntpq", "leap=00, offset=-0.215342", -215e-6),
        ("ntpq", "leap=11, offset=0.000000", None),
    ],
)
def test_the_clocks_offset_is_that_of_what_keeps_it(tmp_path, program, prints, offset_s):
    node = described("lo", tmp_path, PATH=with_program(tmp_path, program, f"echo '{prints}'"))
    if offset_s is None:
        assert node.clock_ntp_offset_s is None
        assert prints in node.absent["clock_ntp_offset_s"]
    else:
        assert node.clock_ntp_offset_s == pytest.approx(offset_s, rel=0.01)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace("node 4", "node 1"), ":1: the header 'netproof-node 4' is miss"),
        (lambda text: text[:-3], ":1:1: is no JSON"),
        (lambda text: re.sub('"mtu": [0-9]+, ', "", text), ": mtu is missing, and no line says"),
        (lambda text: re.sub('"offloads": {.*?}, ', "", text), "offloads is missing, and no line"),
        (lambda text: text.replace('"mtu": ', '"mtu": "large", "x": '), "mtu: found 'large', exp"),
    ],
)
def test_a_nodes_file_that_is_not_whole_is_refused(tmp_path, change, reason):
    path = tmp_path / "node.gige-1.txt"
    path.write_text(change((NODES / "same" / "node.gige-1.txt").read_text()))
    with pytest.raises(NetproofError) as raised:
        node_facts.read_node(path)
    assert str(raised.value).startswith(f"{path}")
    assert reason in str(raised.value)


def on_the_way(folder: Path, monkeypatch, capsys, ring: str, answer=ConnectionRefusedError):
    """Facts of gige-1 on the paths in this ring, and the addresses that it asked.

    ``answer``: to a connection, raised unless it is one; or a function of the address.
    """
    (folder / "ring.txt").write_text(f"gige-1\t{ring}\ngige-2\tgige-1\t198.18.1.1\t-\t-\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{folder / 'programs'}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURMD_NODENAME", "gige-1")
    script, asked = runpy.run_path(str(SCRIPT)), []

    def connect(address: tuple[str, int], _: float) -> object:
        asked.append(address)
        found = answer(address[0]) if isinstance(answer, FunctionType) else answer
        if isinstance(found, type):
            raise found
        return found

    monkeypatch.setattr(socket, "create_connection", connect)
    script["main"]("path", "eth1")
    printed = folder / "path.gige-1.txt"
    printed.write_text(capsys.readouterr().out)
    return node_facts.facts_of(printed, node_facts.PATH_HEADER), asked


@pytest.mark.parametrize(
    ("ping", "found"),
    [
        ("exit 0", {"path_passed_bytes": 1500}),
        # It answers the second of three.
        ('echo >>tries; [ "$(wc -l <tries)" = 2 ]', {"path_passed_bytes": 1500}),
        ('[[ "$*" == *"-s 56 "* ]]', {"path_passed_bytes": 84}),
        (
            "echo ping: socket: Operation not permitted; exit 2",
            {
                "absent": {
                    "path_passed_bytes": "ping of 198.18.1.2 over eth1:"
                    " ping: socket: Operation not permitted"
                }
            },
        ),
    ],
)
def test_a_node_sends_packets_of_its_mtu_to_the_next(tmp_path, monkeypatch, capsys, ping, found):
    with_program(tmp_path, "ip", "echo '2: eth1: <UP,LOWER_UP> mtu 1500 qdisc tbf'")
    with_program(tmp_path, "ping", f'printf "%s\\n" "$*" >>pinged; {ping}')
    ring = "gige-2\t198.18.1.2\tgige-2\t198.18.1.2"
    lines, _ = on_the_way(tmp_path, monkeypatch, capsys, ring)
    asked = {"node": "gige-1", "path_to": "gige-2", "path_asked_bytes": 1500}
    answered = {"tcp_answered": "gige-2", "tcp_unanswered": "none"}
    assert lines == asked | answered | found
    sent = (tmp_path / "pinged").read_text().splitlines()
    assert sent[0] == "-n -q -M do -c 1 -W 1 -s 1472 -I eth1 198.18.1.2"


IN_RING = "gige-2\t198.18.1.2\tgige-4\t198.18.1.4"


@pytest.mark.parametrize(
    ("ring", "silent", "answered", "unanswered", "asks"),
    [
        (IN_RING, 0, "gige-2,gige-4", "none", 2),
        (IN_RING, 2, "gige-2", "gige-4", 3),
        (IN_RING, 1, "gige-2,gige-4", "none", 3),
        ("gige-4\t-\tgige-2\t198.18.1.2", 2, "gige-2", "none", 1),
    ],
)
@pytest.mark.parametrize("answer", [ConnectionRefusedError, io.BytesIO()])
def test_a_node_asks_its_neighbours_for_a_connection(
    tmp_path, monkeypatch, capsys, ring, silent, answered, unanswered, asks, answer
):
    with_program(tmp_path, "ip", "echo '2: eth1: <UP,LOWER_UP> mtu 1500 qdisc tbf'")
    with_program(tmp_path, "ping", "exit 0")
    tries = itertools.count(1)

    def of(address: str) -> object:
        return TimeoutError if address.endswith(".4") and next(tries) <= silent else answer

    lines, asked = on_the_way(tmp_path, monkeypatch, capsys, ring, of)
    assert (lines["tcp_answered"], lines["tcp_unanswered"]) == (answered, unanswered)
    assert len(asked) == asks
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert all(low <= port <= high for _, port in asked)


@pytest.mark.parametrize(
    ("ring", "ip", "why"),
    [
        ("gige-2\t-\tgige-2\t-", "echo 2: eth1: mtu 1500", "gige-2 has no IPv4 address on eth1"),
        (IN_RING, "echo Device eth1 does not exist.", "ip link: Device eth1 does not exist."),
        (
            "gige-2\t198.18.1.2\tgige-2\t198.18.1.2",
            'if [ "$2" = link ]; then echo eth1: mtu 1500; else echo 198.18.1.2 dev eth0 src x; fi',
            "the way to 198.18.1.2 goes over eth0 and not over eth1",
        ),
    ],
)
def test_a_node_that_can_ask_nobody_for_a_connection_says_why(
    tmp_path, monkeypatch, capsys, ring, ip, why
):
    with_program(tmp_path, "ip", ip)
    with_program(tmp_path, "ping", "exit 0")
    lines, asked = on_the_way(tmp_path, monkeypatch, capsys, ring)
    assert not asked
    assert lines["absent"]["tcp_answered"] == lines["absent"]["tcp_unanswered"] == why
    assert not {"tcp_answered", "tcp_unanswered"} & {*lines}


def test_a_jobs_own_nodes_are_in_slurms_order_and_of_that_job(tmp_path):
    path = tmp_path / "job_nodes.json"
    for text, reason in ((None, "cannot be read"), ('{"18": ["a"]}', "is of job 18 and not of 17")):
        if text:
            path.write_text(text)
        with pytest.raises(NetproofError, match=rf"job_nodes\.json: {reason}"):
            node_facts.nodes_of_job(tmp_path, "17")
    path.write_text('{"17": ["gige-2", "gige-1"]}')
    assert node_facts.nodes_of_job(tmp_path, "17") == ("gige-2", "gige-1")


def test_a_job_whose_node_left_no_file_is_refused(tmp_path):
    shutil.copy(NODES / "same" / "node.gige-1.txt", tmp_path)
    with pytest.raises(NetproofError, match=r"no node\.\*\.txt of gige-2"):
        provenance.of_job(tmp_path, ["gige-1", "gige-2"], SOFTWARE)
    with pytest.raises(NetproofError, match="gige-1 wrote a file and is not of the job"):
        provenance.of_job(tmp_path, [], SOFTWARE)


def test_a_node_has_how_far_its_clock_is_ahead_and_the_way_to_the_next():
    nodes = provenance.of_job(NODES / "same", GIGE, SOFTWARE)["nodes"]
    for found, following in zip(nodes, (*GIGE[1:], GIGE[0]), strict=True):
        assert found["clock_ahead_from_s"] <= 0 <= found["clock_ahead_to_s"]
        assert found["path_to"] == following
        assert found["path_passed_bytes"] == found["path_asked_bytes"] == 1500


def test_what_was_not_asked_or_cannot_be_read_of_clocks_and_ways_has_a_reason(tmp_path):
    shutil.copy(NODES / "same" / "node.gige-1.txt", tmp_path)
    (node,) = provenance.of_job(tmp_path, ["gige-1"], SOFTWARE)["nodes"]
    assert node["path_to"] is node["clock_ahead_from_s"] is None
    assert node["absent"]["path_passed_bytes"] == "the job has one node"
    assert "clock.json: cannot be read" in node["absent"]["clock_ahead_to_s"]
    shutil.copy(NODES / "same" / "node.gige-2.txt", tmp_path)
    # It has no lines on connections.
    whole = (NODES / "same" / "path.gige-1.txt").read_text()
    (tmp_path / "path.gige-1.txt").write_text(whole)
    first, second = provenance.of_job(tmp_path, GIGE[:2], SOFTWARE)["nodes"]
    assert (first["path_passed_bytes"], first["tcp_answered"]) == (1500, None)
    assert "does not say" in first["absent"]["tcp_unanswered"]
    assert "path.gige-2.txt: cannot be read" in second["absent"]["path_passed_bytes"]
    asked = ', "tcp_answered": "none", "tcp_unanswered": "gige-1"}'
    (tmp_path / "path.gige-2.txt").write_text(whole.replace("}", asked))
    _, second = provenance.of_job(tmp_path, GIGE[:2], SOFTWARE)["nodes"]
    named = [node_facts.named(second[f"tcp_{what}"]) for what in ("answered", "unanswered")]
    assert named == [(), ("gige-1",)]


def of_pair(**values: object) -> list[Node]:
    """Two recorded nodes that are alike but for this of the second."""
    first, second, *_ = in_job()
    return [first, changed(second, **values)]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (in_job("same"), ()),
        (in_job("differ"), ("gige: mtu: 1500 (gige-1, gige-3, gige-4); 1400 (gige-2)",)),
        (
            of_pair(offloads={"generic-receive-offload": "on"}, sysctls={"net.ipv4.tcp_sack": "0"}),
            (
                "gige: offloads generic-receive-offload: off (gige-1); on (gige-2)",
                "gige: sysctls net.ipv4.tcp_sack: 0 (gige-2); 1 (gige-1)",
            ),
        ),
        (
            [*in_job("same", "7")[1:2], *in_job("differ", "8")[1:2]],
            ("gige: mtu: 1400 (gige-2); 1500 (gige-2)",),
        ),
        (of_pair(driver=None), ("gige: driver: not known (gige-2); veth (gige-1)",)),
    ],
)
def test_nodes_that_differ_say_in_what(nodes, said):
    assert node_facts.differences(nodes) == said


def test_programs_may_differ_between_environments_and_not_within_one():
    other = {"programs": {"NPtcp": "other /usr/bin/NPtcp"}}
    (sentence,) = node_facts.differences(of_pair(**other))
    assert sentence.startswith("gige mpich: programs NPtcp: ")
    assert node_facts.differences(of_pair(**other, environment="openmpi4")) == ()


def test_two_runs_differ_in_what_their_nodes_have_not_alike_and_in_nothing_else():
    """A program elsewhere is the same one; firmware that only one run knows is no difference."""
    node, *_ = before = in_job("same")
    assert node_facts.between(before, in_job("same", "8", "intelmpi")) == {}
    moved = {name: f"{value.split()[0]} /elsewhere" for name, value in node.programs.items()}
    updated = {"kernel": "6.6.1", "sysctls": {"net.core.rmem_max": "1"}, "firmware": "5.2"}
    after = [changed(one, programs=moved, **updated) for one in before]
    assert node_facts.between(before, after) == {
        "kernel": ((node.kernel,), ("6.6.1",)),
        "sysctls net.core.rmem_max": ((node.sysctls["net.core.rmem_max"],), ("1",)),
    }


@pytest.fixture
def checkout(tmp_path):
    """A repository with a commit: the project itself may have come without its own."""
    where = tmp_path / "checkout"
    where.mkdir()
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    for arguments in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *identity, "-C", where, *arguments], check=True)
    return where


def test_software_has_versions_revision_and_what_the_files_held(checkout):
    stated = provenance.software(ROOT / "site-config", ROOT / "reference-values", checkout)
    assert stated.netproof == "0.1.0"
    assert stated.reframe.startswith("4.10.")
    assert re.fullmatch(r"[0-9a-f]{40}", stated.git_revision)
    assert stated.git_changed is False
    path = ROOT / "reference-values" / "testbed.yaml"
    of_references = stated.files[provenance.KIND_REFERENCES]
    assert of_references[str(path)] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert str(ROOT / "site-config" / "testbed.py") in stated.files[provenance.KIND_CONFIGURATION]


@pytest.mark.parametrize("why", ["not a git repository", "git is not installed"])
def test_without_git_or_a_repository_the_revision_has_a_reason(tmp_path, monkeypatch, why):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if why.startswith("git"):
        monkeypatch.setenv("PATH", str(tmp_path))
    stated = provenance.software(ROOT / "site-config", ROOT / "reference-values", tmp_path)
    assert stated.git_revision is stated.git_changed is None
    assert why in stated.unknown["git_revision"]
    with pytest.raises(NetproofError, match=r"has no \*\.py to tell the configuration from"):
        provenance.software(tmp_path, ROOT / "reference-values", ROOT)


def report() -> tuple[dict, dict, dict]:
    """The recorded session with the recorded nodes, as its first job would have left them."""
    document = json.loads(PASSED.read_text())
    first, second = (
        test for test in document["runs"][0]["testcases"] if not test.get("netproof_case")
    )
    record = provenance.of_job(NODES / "same", GIGE, SOFTWARE)
    first[provenance.KEY], second[provenance.KEY] = json.loads(json.dumps(record)), {}
    return document, first, second


def test_what_slurm_said_when_the_run_began_is_kept_and_a_record_is_whole(tmp_path):
    said = {"gige": {"gige-2": "down* (no power)"}, "other": "Slurm has no partition other"}
    document, first, _ = report()
    first["netproof_slurm"] = said
    gathered = session.of_document(tmp_path, json.loads(json.dumps(document))).provenance
    assert gathered.partitions == said
    assert any(key.startswith("nodes of NetpipeJob") for key in gathered.unknown)
    first[provenance.KEY]["nodes"][0].pop("mtu")
    with pytest.raises(NetproofError, match=r"netproof_provenance: is not whole: .*mtu"):
        session.of_document(tmp_path, document)


@pytest.mark.parametrize(
    ("access", "found"),
    [
        (["--partition=a,b"], ["n1", "n2", "n3"]),
        ([], "its access names no partition of Slurm's"),
        (["-pc"], "Slurm has no partition c"),
        (["-pa", "--constraint=ib"], "its access chooses among the nodes: --constraint=ib"),
        (["-pa -wn1", "--qos=r"], "its access chooses among the nodes: -pa -wn1"),
    ],
)
def test_a_partition_has_the_nodes_of_those_that_its_access_names(access, found):
    known = {
        name: SlurmPartition(name, "UP", dict.fromkeys(there, "idle"))
        for name, there in {"a": ("n2", "n1"), "b": ("n3", "n1")}.items()
    }
    choosing = slurm.options_in(access, slurm.CHOOSING)
    nodes = provenance.partition_nodes(slurm.names_in(access), choosing, known)
    assert (nodes if isinstance(nodes, str) else [*nodes]) == found


def test_jobs_that_ran_with_other_files_say_so(tmp_path):
    document, first, second = report()
    second[provenance.KEY] = {**first[provenance.KEY], "git_revision": "0" * 40}
    gathered = session.of_document(tmp_path, document).provenance
    assert gathered.differences == (
        f"{second['display_name']} ran with other versions, revision or files than"
        f" {first['display_name']}",
    )


def test_what_a_prolog_or_a_wrapper_prints_before_and_after_is_skipped(tmp_path):
    recorded = NODES / "same" / "node.gige-1.txt"
    path = tmp_path / recorded.name
    path.write_bytes(b"Welcome to caf\xe9\nload: 0.3\n" + recorded.read_bytes() + b"Good bye\n")
    assert node_facts.read_node(path) == node_facts.read_node(recorded)


def test_a_file_without_its_header_is_quoted_and_an_empty_one_has_the_steps_error(tmp_path):
    path = tmp_path / "node.n1.txt"
    path.write_text("Welcome\n")
    with pytest.raises(NetproofError, match=r"node\.n1\.txt:1: the header .* found 'Welcome'$"):
        node_facts.read_node(path)
    path.with_suffix(".err").write_text("slurmstepd: error: execve(): python3: No such file\n")
    with pytest.raises(NetproofError, match=r"found 'Welcome'; it said: .*python3: No such file"):
        node_facts.read_node(path)
    path.with_suffix(".err").unlink()
    path.write_text("")
    with pytest.raises(NetproofError, match=r"the file is empty, and so is node\.n1\.err"):
        node_facts.read_node(path)
    path.with_suffix(".err").write_text("slurmstepd: error: execve(): bash: No such file\n")
    with pytest.raises(NetproofError, match=r"is empty; it said: .*execve\(\): bash: No such"):
        node_facts.read_node(path)


def requeued(folder: Path) -> session.Session:
    """The session of a report whose one job left ``folder``."""
    record = provenance.of_job(folder, GIGE, SOFTWARE)
    test = {
        **dict.fromkeys(("system", "partition", "environ"), "gige"),
        **{"display_name": "ImbJob", "jobid": 7, "result": "pass", "fail_phase": None},
        provenance.KEY: json.loads(json.dumps(record)),
        "netproof_requeued": provenance.earlier_tries(folder),
    }
    runs = [{"num_cases": 1, "testcases": [test]}]
    return session.of_document(folder, {"session_info": {}, "runs": runs})


def test_the_nodes_of_an_earlier_try_are_in_the_session_with_slurms_word_on_them(tmp_path):
    shutil.copytree(NODES / "same", tmp_path, dirs_exist_ok=True)
    assert requeued(tmp_path).provenance.beyond_nodes == ()
    (tmp_path / "try-1").mkdir()
    (tmp_path / "try-1" / "nodes.txt").write_text("gige-1|down*|Not responding\ngige-2|idle|none\n")
    found = requeued(tmp_path)
    why = "requeued: ImbJob (job 7), after a try on gige-[1-2]: gige-1 is down* (Not responding)"
    states = {"gige-1": "down* (Not responding)", "gige-2": "idle"}
    assert found.results[0].requeued == {why: states}
    assert found.provenance.beyond_nodes == (why,)
    (tmp_path / "try-1" / "nodes.txt").unlink()
    (sentence,) = requeued(tmp_path).provenance.beyond_nodes
    assert sentence == (
        "requeued: ImbJob (job 7), after a try: no node of it is down now: preempted, restarted,"
        " or by hand"
    )
