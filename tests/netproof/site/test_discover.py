"""A site's files from recorded answers of a cluster that netproof had not seen."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import pytest
from made_sites import ROOT

from netproof.errors import NetproofError
from netproof.site import discover, look, site, slurm
from netproof.site.look import Device, Interface, Looked, LookedEnvironment, LookedNode
from netproof.site.matrix import matrix
from netproof.verdict.references import ReferenceFile

KESTREL = ROOT / "tests" / "data" / "clusters" / "kestrel"
FABRIC = {"ens1f0": {1048576: 998.0}}
NETWORKS = {**FABRIC, "eno1": {1048576: 193.0}}


def looked_at(folder: Path, *words: str) -> Path:
    """Run the job's script in a folder, and return the file with what it printed."""
    for script in look.SCRIPTS:
        shutil.copy(script, folder)
    command = [sys.executable, "-Es", "look_job.py", *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    (folder / "node.n1.txt").write_text(ran.stdout)
    return folder / "node.n1.txt"


@pytest.fixture
def look_job(monkeypatch) -> ModuleType:
    """The job's script, beside what it imports."""
    for script in look.SCRIPTS:
        monkeypatch.syspath_prepend(script.parent)
    return importlib.import_module("look_job")


def said(name: str) -> str:
    return (KESTREL / name).read_text()


@pytest.fixture
def kestrel(monkeypatch) -> None:
    """Slurm's commands answer as on kestrel for nina."""

    def ask(*command: str, merged: bool = False) -> str:
        match command:
            case ("scontrol", "ping"):
                return "Slurmctld(primary) at mgmt1 is UP"
            case ("scontrol", *_):
                return said("partitions.txt")
            case ("sinfo", *_):
                return said("sinfo.txt").replace("allocated", "idle")
            case ("sacctmgr", *_):
                return said("associations.txt")
            case ("srun", "--mpi=list"):
                return said("mpi.txt")
            case ("sbatch", "--test-only", *options):
                return tested(options)
        raise AssertionError(command)

    def tested(options: list[str]) -> str:
        """Answer as job_submit.lua and the partitions' limits do there."""
        given = dict(one.lstrip("-").partition("=")[::2] for one in options)
        why = ""
        if given.get("account") not in ("net", "chem"):
            why = "allocation failure: Invalid account or account/partition combination specified"
        elif given["partition"] == "shared" and "exclusive" in given:
            why = "sbatch: error: kestrel: nodes of partition shared are shared"
        elif given["partition"] == "batch" and int(given["nodes"]) > 4:
            why = "allocation failure: Requested node configuration is not available"
        if why:
            raise NetproofError(f"{' '.join(('sbatch', *options))}: {why}")
        return ""

    monkeypatch.setattr(slurm, "ask", ask)


def node(name="cn007", python="", devices=(), interfaces=None) -> LookedNode:
    there = interfaces or (
        Interface("eno1", 1500, 10000, "10.141.0.13", "veth 1.0", ""),
        Interface("ens1f0", 9000, 10000, "10.142.0.13", "veth 1.0", ""),
    )
    return LookedNode(name, python, there, tuple(devices))


def environment(**changes) -> LookedEnvironment:
    values = {
        "programs": {"NPtcp": "/usr/bin/NPtcp", "IMB-MPI1": "/srv/imb/bin/IMB-MPI1"},
        "library": ("/srv/mpich/lib/libmpi.so.12", "MPICH Version:      5.0.2"),
        "pmi": "pmi2",
        "mbit_s": {"IMB-MPI1": 960.0},
        "said": {},
    }
    return LookedEnvironment(**values | changes)


def partition(looked: Looked, **changes) -> discover.DiscoveredPartition:
    values = {
        "name": "batch",
        "access": ["--partition=batch", "--account=chem"],
        "nodes": 4,
        "usable": 7,
        "time_limit": "1h",
        "looked": looked,
    }
    return discover.DiscoveredPartition(**values | changes)


def found(looked: Looked, **changes) -> discover.Discovered:
    candidate = {"modules": ["gcc/12.2", "mpich/5.0.2", "imb/2021.7"]}
    environments = {"mpich-gcc": (candidate, environment())}
    return discover.Discovered([partition(looked, **changes)], environments, "tmod4", [], [])


class TestAnswers:
    @pytest.mark.parametrize(
        ("modules", "libraries", "compilers"),
        [
            # OpenHPC, Spack's names, EasyBuild, Sheffield, Cray.
            (
                "gnu12/12.2.0 openmpi4/4.1.5 mpich/3.4.3-ofi mvapich2/2.3.7 ucx/1.14.0 prun/2.2",
                "openmpi4/4.1.5 mpich/3.4.3-ofi mvapich2/2.3.7",
                "gnu12/12.2.0",
            ),
            (
                "intel-oneapi-compilers/2023.1.0 intel-oneapi-mkl/2024.0.0 intel-oneapi-mpi/2021.9",
                "intel-oneapi-mpi/2021.9",
                "intel-oneapi-compilers/2023.1.0",
            ),
            (
                "GCCcore/12.3.0 GCC/12.3.0 OpenMPI/4.1.5-GCC-12.3.0 gompi/2023a OpenMP/5",
                "OpenMPI/4.1.5-GCC-12.3.0",
                "GCC/12.3.0 gompi/2023a",
            ),
            ("mpi/gcc/openmpi/1.10.1 mpi/gcc/openmpi/1.10.0", "mpi/gcc/openmpi/1.10.1", ""),
            (
                "PrgEnv-gnu/8.4.0 gcc-native/12.3 cray-mpich/8.1.27 cray-mpich-abi/8.1.27",
                "cray-mpich/8.1.27",
                "PrgEnv-gnu/8.4.0",
            ),
        ],
    )
    def test_libraries_and_compilers_have_the_names_of_other_sites(
        self, modules, libraries, compilers
    ):
        names = modules.split()
        assert [*discover._newest(names, discover._MPI).values()] == libraries.split()
        assert [*discover._newest(names, discover._COMPILER).values()] == compilers.split()

    def test_module_names_are_without_their_folders_and_marks(self):
        names = discover.modules_of(said("modules.txt"))
        assert names[0] == "gcc/12.2"
        lmod = "/opt/modules:\ngcc/\ngcc/13.1(default)\nimpi/2021.7 <L>\nopenmpi/4.1.5 (D)\n"
        assert discover.modules_of(lmod) == ["gcc/13.1", "impi/2021.7", "openmpi/4.1.5"]


class TestModules:
    @pytest.fixture
    def tree(self, monkeypatch):
        """A hierarchy: MPI below a compiler, benchmarks below MPI, old versions beside new ones."""
        shown = {
            (): ["gcc/9.4", "gcc/12.2", "imb/2019-mpich"],
            ("gcc/12.2",): ["gcc/12.2", "mpich/4.3", "mpich/5.0.2", "openmpi/4.1.4"],
            ("gcc/12.2", "mpich/5.0.2"): ["gcc/12.2", "imb/2021.7", "netpipe/3.7.2"],
            ("gcc/12.2", "openmpi/4.1.4"): ["gcc/12.2", "imb/2019-mpich"],
        }
        monkeypatch.setattr(discover, "_available", lambda loaded: shown[tuple(loaded)])
        monkeypatch.setattr(discover.shutil, "which", lambda name: None)

    def test_a_hierarchy_is_walked_and_the_newest_versions_are_taken(self, tree):
        assert dict(discover.candidates()) == {
            "mpich-gcc": {"modules": ["gcc/12.2", "mpich/5.0.2", "imb/2021.7", "netpipe/3.7.2"]},
            "openmpi-gcc": {"modules": ["gcc/12.2", "openmpi/4.1.4"]},
        }

    def test_programs_in_path_are_an_environment_with_their_folders(self, monkeypatch):
        monkeypatch.setattr(discover, "_available", lambda loaded: [])
        monkeypatch.setattr(discover.shutil, "which", lambda name: f"/opt/mpich/bin/{name}")
        ((name, one),) = discover.candidates()
        assert name == "path"
        assert discover.setup_of_candidate(one) == [
            'export PATH="/opt/mpich/bin:$PATH"',
            'export LD_LIBRARY_PATH="/opt/mpich/lib:$LD_LIBRARY_PATH"',
        ]


class TestPartitions:
    def test_the_fewest_with_all_nodes_are_taken_and_the_others_said_with_the_reason(self, kestrel):
        (one, gpu), left_out = discover.usable_partitions(())
        assert (gpu.name, gpu.nodes) == ("gpu", 1)
        assert (one.name, one.nodes, one.usable, one.time_limit) == ("batch", 4, 7, "1h")
        assert one.access == ["--partition=batch", "--account=chem"]
        assert one.questions == ["access: which account pays? chem, net"]
        assert [one.partition(":")[0] for one in left_out] == ["shared", "rack2", "debug"]
        assert "nodes of partition shared are shared" in left_out[0]

    def test_a_partition_may_be_asked_for_even_a_hidden_one(self, kestrel):
        several, _ = discover.usable_partitions(("wide", "debug"))
        assert [(one.name, one.nodes, one.time_limit) for one in several] == [
            ("wide", 7, "1h"),
            ("debug", 2, "30m"),
        ]
        with pytest.raises(NetproofError, match="no partition fast; it has batch, debug"):
            discover.usable_partitions(("fast",))


IP = r"""
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
2: eno2: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN
3: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP qlen 256
4: bond0.100@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc noqueue\ vf 0 link/ether
5: enp65s0f0v0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP
"""
ETHTOOL = {
    "ib0": "Speed: 100000Mb/s",
    "bond0.100": "Speed: 50000Mb/s",
    "enp65s0f0v0": "Speed: Unknown!\n\tDuplex: Unknown! (255)",
    "-i ib0": "driver: mlx5_core[ib_ipoib]\nversion: 5.8-2.0.3\nbus-info: 0000:a1:00.0",
    "-i bond0.100": "driver: 802.1Q VLAN Support\nversion: 1.8\nbus-info: ",
    "-i enp65s0f0v0": "driver: iavf\nversion: \nfirmware-version: N/A\nbus-info: N/A",
}


class TestLooked:
    def test_bonds_virtual_functions_and_infiniband_are_interfaces_that_are_up(
        self, tmp_path, command, monkeypatch
    ):
        cases = "".join(f"'{words}') echo '{said}' ;;\n" for words, said in ETHTOOL.items())
        shown = f"cat <<'EOF'{IP}EOF\n;; *) echo ' inet 10.1.0.7/24'"
        command("ip", f"case $* in *show) {shown} ;; esac")
        command("ethtool", f'case "$*" in {cases}*) exit 75 ;; esac')
        monkeypatch.setenv("SLURMD_NODENAME", "n1")
        described = look.node_of(looked_at(tmp_path, "node", str(ROOT)))
        assert (described.name, described.python_fault) == ("n1", "")
        found = described.interfaces
        assert [(one.name, one.mtu, one.link_mbit_s, one.driver) for one in found] == [
            ("ib0", 2044, 100000, "mlx5_core[ib_ipoib] 5.8-2.0.3"),
            ("bond0.100", 9000, 50000, "802.1Q VLAN Support 1.8"),
            ("enp65s0f0v0", 1500, None, "iavf"),
        ]
        assert {one.address for one in found} == {"10.1.0.7"}

    def test_a_node_is_read_past_what_a_prolog_prints_and_refused_if_cut(self, tmp_path):
        whole = node(devices=(Device("mlx5_0", "InfiniBand", 100000, True, "1", ("ib0",)),))
        greeting = "Welcome to kestrel, see https://kestrel.hpc/help"
        text = f"{greeting}\n{look.HEADER}{json.dumps(asdict(whole))}\n"
        file = tmp_path / "node.cn007.txt"
        file.write_text(text)
        assert look.node_of(file) == replace(whole, printed=(greeting,))
        file.write_text(text[:-40])
        with pytest.raises(NetproofError, match="cut short"):
            look.node_of(file)

    def test_a_node_that_says_nothing_has_no_python(self, tmp_path):
        (tmp_path / "node.cn007.a.txt").write_text("")
        (tmp_path / "node.cn007.a.err").write_text(
            f"slurmstepd: error: execve(): {sys.executable}: No such file or directory\n"
        )
        one = look.node_of(tmp_path / "node.cn007.a.txt")
        assert (one.name, one.interfaces) == ("cn007.a", ())
        assert f"cn007.a cannot start {sys.executable}, which runs every job: No such file" in (
            look.without_python([one])
        )

    def test_a_python_that_cannot_import_netproof_is_a_fault(self, tmp_path):
        (tmp_path / "netproof").mkdir()
        (tmp_path / "netproof" / "__init__.py").write_text("import pydantic_of_another_python")
        one = look.node_of(looked_at(tmp_path, "node", str(tmp_path)))
        assert one.python_fault == (
            "ModuleNotFoundError: No module named 'pydantic_of_another_python'"
        )

    def test_a_device_is_active_by_any_of_its_ports(self, tmp_path, look_job):
        for number, state in ((1, "1: DOWN"), (2, "4: ACTIVE")):
            port = tmp_path / "infiniband" / "mlx4_0" / "ports" / str(number)
            port.mkdir(parents=True)
            (port / "state").write_text(f"{state}\n")
            (port / "rate").write_text(f"{40 * number} Gb/sec (4X QDR)\n")
            (port / "link_layer").write_text("InfiniBand\n")
        (tmp_path / "infiniband" / "rxe0").mkdir()
        (tmp_path / "infiniband" / "mlx4_0" / "device").mkdir()
        (one,) = look_job.devices(tmp_path)
        assert (one["name"], one["mbit_s"], one["active"]) == ("mlx4_0", 80000, True)

    def test_an_environment_has_the_plugin_by_which_two_ranks_met(self, tmp_path):
        said = ["unsupported PMI version", "libfabric.so.1 not found", "Welcome"]
        whole = environment(carried={"IMB-MPI1": {"eno1": 32, "lo": 0}})
        left = asdict(whole) | {"said": {"NPmpi": ["--mpi=pmi2: ", "status 127", *said]}}
        (tmp_path / "programs.txt").write_text(look.HEADER + json.dumps(left))
        one = look.environment_of(tmp_path, ["Welcome"])
        assert one == replace(whole, said={"NPmpi": "--mpi=pmi2: libfabric.so.1 not found"})

    def test_an_environment_that_cannot_be_set_up_has_the_words_of_modules(self, tmp_path):
        (tmp_path / "setup.err").write_text("ERROR: Unable to locate a modulefile for 'gcc/99'\n")
        one = look.environment_of(tmp_path)
        assert one.said == {"setup": "ERROR: Unable to locate a modulefile for 'gcc/99'"}

    @pytest.mark.parametrize(
        ("script", "pmi", "said"),
        [
            ("echo '   1048576   20   8738.1   120.00'", "pmix", None),
            ("[ $1 = --mpi=pmi2 ] && echo '   1048576   20   8738.1   120.00'", "pmi2", None),
            ("echo '   1048576  2  8.1  120'; exit 1", "", ["status 1", "1048576  2  8.1  120"]),
            ("echo no PMI >&2", "", ["status 0", "no PMI"]),
        ],
    )
    def test_a_program_that_failed_has_not_run_whatever_it_printed(
        self, tmp_path, command, script, pmi, said
    ):
        command("srun", script)
        command("IMB-MPI1", "")
        file = looked_at(tmp_path, "environment", "n1", "pmix", "pmi2")
        found = json.loads(file.read_text().removeprefix(look.HEADER))
        assert (found["pmi"], found["mbit_s"]) == (pmi, {"IMB-MPI1": 960.0} if pmi else {})
        assert found["said"] == ({"IMB-MPI1": ["--mpi=pmix: ", *said]} if said else {})


class TestInterface:
    def test_the_faster_network_by_tcp_is_taken_and_its_rate_is_the_links(self):
        looked = Looked((node(), node("cn012")), NETWORKS, {})
        one = partition(looked)
        chosen, rate = discover.interface_of(one)
        assert (chosen.name, rate) == ("ens1f0", 1000)
        assert "is ens1f0 on the switch under test" in one.questions[0]
        assert one.questions[1].startswith("link_mbit_s: a guess")
        named = partition(looked, interface="eno1")
        assert discover.interface_of(named)[0].name == "eno1"
        assert not any("switch under test" in question for question in named.questions)
        # A node lacks it.
        other = node("cn012", interfaces=node().interfaces[:1])
        one = partition(Looked((node(), other), NETWORKS, {}))
        assert discover.interface_of(one)[0].name == "eno1"

    def test_a_real_link_that_carries_half_is_asked_about(self):
        real = (Interface("eno1", 1500, 10000, "10.0.0.1", "ixgbe 5.1", "X540"),)
        one = partition(Looked((node(interfaces=real),), {"eno1": {1048576: 940.0}}, {}))
        assert discover.interface_of(one)[1] == 10000
        assert "is that the link's rate" in one.questions[0]


class TestTokenBucket:
    @pytest.mark.parametrize(
        ("rates", "least"),
        [
            ({65536: 990.0, 1048576: 998.0}, None),
            ({4096: 310.0, 32768: 1900.0, 98304: 1100.0, 131072: 1000.0, 1048576: 998.0}, 131072),
            ({65536: 1100.0, 131072: 1000.0}, 131072),
        ],
    )
    def test_peaks_count_from_where_no_message_is_faster_than_the_link(self, rates, least):
        one = partition(Looked((node(),), {"ens1f0": rates}, {}))
        assert discover.extras_of(one).get("line_rate_from_bytes") == least

    def test_rates_are_of_million_bits_at_each_size_that_was_measured(self, look_job):
        text = "   4096  100.000000  0.00032\n1048576  953.674316  0.00838861\n 20971"
        assert look_job.rates_of(text) == pytest.approx({4096: 102.4, 1048576: 1000.0}, rel=1e-4)


INFINIBAND = Device("mlx5_0", "InfiniBand", 100000, True, "1", ("ib0",))
OTHER = Device("irdma0", "Ethernet", 10000, True, "0", ("eno1",))
ROCE = Device("mlx5_0", "Ethernet", 100000, True, "1", ("ens1f0",))
RAILS = [Device(f"mlx5_{n}", "Ethernet", 200000, True, str(n), ()) for n in (0, 1)]


@pytest.mark.parametrize(
    ("devices", "extras", "asked"),
    [
        ([INFINIBAND], ("infiniband", 100000, None), ""),
        # The device of the interface counts where other cards have RDMA too.
        ([OTHER, ROCE], ("roce", 100000, None), ""),
        (RAILS, ("roce", 200000, ["mlx5_0", "mlx5_1"]), "mlx5_1 at NUMA node 1"),
        ([Device("cxi0", "", None, True, "", ())], (None, 1000, None), "mpi_over_tcp"),
    ],
)
def test_the_rate_is_the_fabrics_and_what_is_not_known_of_it_a_question(devices, extras, asked):
    one = partition(Looked((node(devices=devices),), FABRIC, {}))
    found = discover.extras_of(one)
    assert tuple(map(found.get, ("rdma", "link_mbit_s", "rails"))) == extras
    assert any(asked in question for question in one.questions) or not asked


def test_nodes_without_a_network_are_a_question_and_the_file_is_written():
    bare = LookedNode("cn1", "", (), ())
    one = partition(Looked((bare,), {}, {}))
    assert discover.extras_of(one)["interface"] == "eth0"
    assert "no interface with an IPv4 address" in one.questions[0]


class TestWritten:
    MADE = found(Looked((node(), node("cn012", python="No such file")), FABRIC, {}))
    TEXT = discover.site_text("kestrel", MADE)

    def test_the_files_are_a_site_without_a_fault_whose_cases_all_have_references(self, tmp_path):
        for folder in (tmp_path / "site-config", tmp_path / "reference-values"):
            folder.mkdir()
        (tmp_path / "site-config" / "kestrel.py").write_text(self.TEXT)
        (tmp_path / "site-config" / "settings.py").write_text("")
        path = tmp_path / "reference-values" / "kestrel.yaml"
        path.write_text(discover.references_text("kestrel"))
        references = ReferenceFile(path)
        gathered = site.gather(tmp_path / "site-config")
        expected = matrix(gathered, "kestrel", all_functions=True)
        for case in expected.cases:
            name = discover.registry.check_name(case.benchmark, case.function)
            entries = references.find(name, case)
            judged = case.path == "inter-node"
            assert (entries["line_rate_share"] == [100, None, 0.02, "%"]) is judged
        assert {case.ranks for case in expected.cases} == {2, 4}
        (entry,) = gathered["systems"][0]["partitions"]
        assert entry["env_vars"][0] == ["OMPI_MCA_btl_tcp_if_include", "ens1f0"]

    def test_every_question_is_in_the_file_and_what_deviates_from_no_default_is_not(self):
        asked = re.findall(r"# \? (.*)", self.TEXT)
        assert [one.partition(": ")[2] for one in self.MADE.questions] == asked
        assert any(f"cn012 cannot start {sys.executable}" in one for one in asked)
        for key in ("baseline", "coverage_percent", "contention_domain", "step_limit_s"):
            assert key not in self.TEXT


class TestDiscovered:
    """All of it on kestrel, but the jobs: what they found is given."""

    @pytest.fixture
    def tried(self, kestrel, monkeypatch) -> list[tuple[list[str], int, dict]]:
        """Jobs that were submitted: access, nodes, and environments with their PMI plugins."""
        jobs = []

        def look(folder, access, nodes, environments, wait_s):
            jobs.append((access, nodes, environments))
            found = {name: environment() for name in environments}
            return Looked((node(), node("cn012")), FABRIC, found)

        monkeypatch.setattr(discover, "look", look)
        monkeypatch.setattr(discover, "modules_system", lambda: "tmod4")
        several = {name: {"modules": [name]} for name in ("mpich", "openmpi")}
        monkeypatch.setattr(discover, "candidates", several.items)
        return jobs

    def test_the_first_partition_tries_all_environments_and_the_next_measures_networks(
        self, tried, tmp_path
    ):
        made = discover.discover(tmp_path, ("batch", "debug"))
        assert [one.name for one in made.partitions] == ["batch", "debug"]
        assert list(made.environments) == ["mpich", "openmpi"]
        first, second = tried
        assert first[0] == ["--partition=batch", "--account=chem", "--exclusive"]
        assert (first[1], second[1]) == (4, 2)
        assert (list(first[2]), list(second[2])) == (["mpich", "openmpi"], ["mpich"])
        assert first[2]["mpich"][1] == ["pmix", "pmi2", "cray_shasta"]

    def test_a_partition_whose_job_does_not_run_is_left_out_with_the_reason(
        self, tried, tmp_path, monkeypatch
    ):
        def look(*arguments):
            raise NetproofError("job 7 waits: AssocGrpNodeLimit")

        monkeypatch.setattr(discover, "look", look)
        with pytest.raises(NetproofError, match="batch: job 7 waits: AssocGrpNodeLimit"):
            discover.discover(tmp_path)

    def test_without_a_benchmark_it_is_said_how_to_get_one(self, tried, tmp_path, monkeypatch):
        monkeypatch.setattr(discover, "candidates", lambda: iter(()))
        made = discover.discover(tmp_path)
        assert "docs/spack-sites.md" in made.questions[-1]
        assert made.environments == {}
