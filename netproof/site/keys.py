"""Keys of a partition and of an environment in a site's file: kind, default and meaning of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
)

from netproof.benchmarks import registry
from netproof.benchmarks.registry import FEATURES, MPI_BENCHMARKS, STARTED
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError
from netproof.intake.models import Written, expression
from netproof.measurement.links import RDMA, Transport, packet
from netproof.site.load_settings import LoadSettings
from netproof.site.pair_settings import PairSettings

COVERAGE_PERCENT = 100
"""Percentage of a partition's usable nodes that a run has to measure, unless the site sets it."""

FACTS = (
    *("kernel", "architecture", "cpu", "cpus", "microcode", "governor", "memory", "mitigations"),
    *("hugepages", "clock_source", "clock", "state", "nic", "pci", "driver", "driver_version"),
    *("firmware", "link_mbit_s", "duplex", "autonegotiation", "mtu", "offloads", "coalescing"),
    *("rings", "sysctls", "programs", "path", "tcp"),
)
"""Facts by which nodes are compared; a group such as ``sysctls`` also by each of its keys."""

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and line ends: not allowed in lines of job scripts, tables and file names."""


def _obeying(rule: Callable[[Any], str | None]) -> AfterValidator:
    """Return a validator; ``rule`` returns the remedy for a bad value, None for a good one."""

    def checked(value: Any) -> Any:
        remedy = rule(value)
        if remedy:
            raise ValueError(remedy)
        return value

    return AfterValidator(checked)


def _rails(value: tuple[str, ...]) -> str | None:
    return None if len(set(value)) == len(value) else f"{list(value)} names one twice"


def _power_of_two(value: int) -> str | None:
    if value >= 1024 and value & (value - 1) == 0:
        return None
    return f"{value} is no power of two from 1024 bytes up, 1048576 for instance"


def _rank_counts(counts: tuple[int, ...]) -> str | None:
    value = list(counts)
    if not all(type(count) is int and count >= 2 for count in value):
        return f"{value} is no list of whole numbers from 2 up, [16, 32, 64] for instance"
    if sorted(set(value)) != value:
        return f"{value} has to increase, without repeats"
    return None


def _with_reasons(
    say: str, refused: Callable[[str], str | None] = lambda key: None
) -> Callable[[dict[str, str]], str | None]:
    """Return the rule of keys that each have a reason; ``refused``: what is wrong with a key."""

    def rule(value: dict[str, str]) -> str | None:
        for key, reason in value.items():
            if remedy := refused(key):
                return remedy
            if not isinstance(reason, str) or not reason.strip():
                return f"{say.format(key)}, in a sentence"
        return None

    return rule


def _of_site(read: Callable[[Any], Any]) -> Callable[[Any], str | None]:
    """Return the rule of what ``read`` takes, or refuses with a NetproofError."""

    def rule(value: Any) -> str | None:
        try:
            read(value)
        except NetproofError as error:
            return str(error)
        return None

    return rule


def _no_feature(name: str) -> str | None:
    return (
        None if name in FEATURES else f"{name!r} is no benchmark; those are {', '.join(FEATURES)}"
    )


def _no_fact(fact: Any) -> str | None:
    if isinstance(fact, str) and fact.split(" ")[0] in FACTS:
        return None
    return f"{fact!r} is nothing that nodes are compared by; those are {', '.join(FACTS)}"


def _sizes(value: dict[str, dict[str, Any]]) -> str | None:
    by_name = {one.name: one for one in STARTED}
    for name, settings in value.items():
        if name not in by_name:
            return f"{name!r} is no benchmark; those are {', '.join(by_name)}"
        if not isinstance(settings, dict):
            return f"{name}: give a dictionary of settings"
        if settings and not by_name[name].sizes.model_fields:
            return f"{name}: {by_name[name].label} measures sizes that double, and no others"
        if remedy := _of_site(by_name[name].sizes.of_site)(settings):
            return f"{name}: {remedy}"
    return None


_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_Line = Annotated[str, Field(pattern=f"^[^{_CONTROL}]*$", title="a line, no control characters")]
_Text = Annotated[
    str,
    Field(
        pattern=rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$",
        title="text of one line, no control characters",
    ),
]
_Word = Annotated[str, Field(pattern=rf"^[^\s{_CONTROL}]+$", title="a word without white space")]
# As Linux accepts them, but no dash first, which programs read as an option.
_Interface = Annotated[
    str,
    Field(
        pattern=rf"^[^\s/{_CONTROL}-][^\s/{_CONTROL}]{{0,14}}$",
        title="an interface's name: 1 to 15 characters, no white space, no '/', no '-' first",
    ),
]
_Positive = Annotated[int, Field(gt=0, title="a whole number above 0")]
_Count = Annotated[int, Field(ge=0, title="a whole number, 0 or more")]
_Mtu = Annotated[int, Field(ge=576, le=65535, title="576 to 65535")]
_Percentage = Annotated[int, Field(ge=0, le=100, title="a percentage, 0 to 100")]
_Rdma = Annotated[
    str,
    Field(
        pattern=f"^({'|'.join(RDMA)})?$",
        title="roce or infiniband",
    ),
]
_ByName = dict[str, Any]
_MayDiffer = Annotated[_ByName, _obeying(_with_reasons("say why {!r} may differ", _no_fact))]
_Known = Annotated[
    dict[str, Any], _obeying(_with_reasons("say what is known of {!r}", _of_site(expression)))
]
# Lists of a site become tuples.
_Words = Annotated[tuple[_Line, ...], Field(strict=False, title="a list of lines of text")]
_RankCounts = Annotated[tuple[int, ...], Field(strict=False), _obeying(_rank_counts)]
_Rails = Annotated[tuple[_Interface, ...], Field(strict=False), _obeying(_rails)]


class _OfNetwork(Written):
    switch: _Text = Field(description="the switch's name on site")
    nic: _Text = Field(description="the nodes' network card")
    driver: _Text = Field(description="its driver and version")
    link_mbit_s: _Positive = Field(description="rate of a link in Mbit/s of 10⁶ bits")
    mtu: _Mtu = Field(description="MTU in bytes")
    interface: _Interface = Field(
        description="IP interface of the nodes that leads over the switch"
    )
    nodes: _Positive = Field(description="nodes that a job of this partition can have")
    ranks_per_node: _Positive = Field(description="ranks on each node")
    rank_counts: _RankCounts = Field(
        description="rank counts to measure, increasing; none on one node"
    )
    max_message_bytes: Annotated[int, _obeying(_power_of_two)] = Field(
        4194304, description="largest message, a power of two"
    )
    sizes: Annotated[_ByName, _obeying(_sizes)] = Field(
        {},
        description="which message sizes are measured beyond those of each benchmark: benchmark to"
        " setting to value",
    )

    @field_validator("sizes")
    @classmethod
    def _fit(cls, value: dict[str, dict[str, Any]], info: ValidationInfo) -> dict[str, Any]:
        most = info.data.get("max_message_bytes")
        for name, settings in value.items():
            largest = registry.named(name).sizes.of_site(settings).largest()
            if most is not None and largest > most:
                raise ValueError(f"{name}: {largest} bytes is above max_message_bytes, {most}")
        return value

    contention_domain: _Line = Field(
        "",
        description="jobs with the same word never measure at the same time; by default the"
        " switch's name",
    )
    netpipe_repeats: _Count = Field(
        0,
        description="round trips of each message size in a NetPIPE trial (-n); 0 lets NetPIPE"
        " choose",
    )
    netpipe_mpi_inside_repeats: _Count = Field(
        0,
        description="the same for MPI inside a node, whose messages take less than a microsecond:"
        " too few round trips measure by how much one rank starts after the other",
    )


if TYPE_CHECKING:
    _OfBenchmarks = _OfNetwork
else:
    _OfBenchmarks = create_model(
        "_OfBenchmarks",
        __base__=_OfNetwork,
        **{
            one.arguments_key: (_Words, Field((), description=one.arguments_meaning))
            for one in MPI_BENCHMARKS
        },
    )


class PartitionExtras(_OfBenchmarks):
    """Keys of a partition; those with a default may be omitted."""

    line_rate_from_bytes: _Count = Field(
        0,
        description="least message that can be the peak, and at which MPI is compared with TCP;"
        " above 0 only for a link that a token bucket emulates",
    )

    @field_validator("line_rate_from_bytes")
    @classmethod
    def _measured(cls, value: int, info: ValidationInfo) -> int:
        most = info.data.get("max_message_bytes")
        if most is not None and value > most:
            raise ValueError(f"{value} bytes is above max_message_bytes, {most}")
        return value

    step_limit_s: _Positive = Field(
        600, description="seconds after which one launch of a benchmark is ended"
    )
    first_figure_s: _Count = Field(
        300,
        description="seconds after which a launch that has printed no figure is ended, as ranks"
        " that cannot reach each other wait for ever; 0: only step_limit_s ends it",
    )
    crash_retries: _Count = Field(
        3,
        description="how often a launch that crashes before its first figure is launched again; 0:"
        " never, and its case fails",
    )
    twin: _Words = Field(
        (),
        description="command, word by word, that runs NetPIPE's NPtcp at both ends of a healthy"
        " link of the same kind, with the arguments that follow; empty where there is no such link",
    )
    pace: _Words = Field(
        (),
        description="command, word by word, that watches how many ns two CPUs of its node take to"
        " hand a cache line over while a launch inside a node runs: called with the word `watch`,"
        " it prints the means of the first and the second half of that time when its standard"
        " input ends; for virtual machines, whose CPUs the hypervisor moves",
    )
    tuning_hook: _Words = Field(
        (),
        description="command, word by word, that reads and sets what takes root on the node where"
        " it runs, for `netproof measure tune`: followed by `get NAME`, or by `set NAME VALUE`",
    )
    rails: _Rails = Field(
        (),
        description="interfaces, or devices of InfiniBand and RoCE as mlx5_0, that together carry"
        " what is sent over the switch; by default the interface alone",
    )
    rdma: _Rdma = Field(
        "",
        description="what carries MPI that does not go over TCP, roce or infiniband: its line rate"
        " then bounds it; by default no line rate is known of it",
    )
    rdma_mtu: _Count = Field(
        0,
        description="MTU in bytes of RDMA: of InfiniBand its path MTU, by default 4096, of RoCE"
        " that of Ethernet, by default the interface's",
    )

    @field_validator("rdma_mtu")
    @classmethod
    def _carries(cls, value: int, info: ValidationInfo) -> int:
        rdma = info.data.get("rdma", "")
        if value and not rdma:
            raise ValueError("is the MTU of RDMA, and rdma does not say which")
        if value:
            try:
                packet(value, Transport(rdma))
            except NetproofError as error:
                raise ValueError(str(error)) from error
        return value

    driver_counters: bool = Field(
        True,
        description="whether what these interfaces' drivers count is read around each launch"
        " (ethtool -S)",
    )
    may_differ: _MayDiffer = Field(
        {},
        description="what may differ between its nodes, and from what is said here: a fact of"
        " theirs, `mtu` or `sysctls net.ipv4.tcp_sack` or all `sysctls` for instance, to the"
        " reason",
    )
    clock_offset_ms: _Positive = Field(
        1000, description="milliseconds that the clocks of its nodes may be apart"
    )
    coverage_percent: _Percentage = Field(
        COVERAGE_PERCENT,
        description="how many percent of the nodes that Slurm calls usable a run has to measure;"
        " with fewer it fails; 0: it says how many",
    )
    wait_for_nodes_s: _Positive = Field(
        3600,
        description="seconds that a run waits for nodes that other jobs hold; then it measures the"
        " free ones in pairs, and names the others",
    )
    pairs: Annotated[_ByName, _obeying(_of_site(PairSettings.of_site))] = Field(
        {}, description="what differs from the defaults of rounds of pairs: setting to value"
    )
    load: Annotated[_ByName, _obeying(_of_site(LoadSettings.of_site))] = Field(
        {},
        description="what differs from the defaults of `netproof measure load`: setting to value",
    )
    baseline: str = Field(
        "",
        description="the environment that scores of the whole system are relative to, on one of"
        " its partitions; by default the first one of the first partition",
    )
    criteria: Annotated[
        dict[str, Any], _obeying(_of_site(lambda value: Settings.of_site(value, 0)))
    ] = Field(
        {},
        description="what differs from the criteria's defaults: criterion to setting to value",
    )
    retired: Annotated[_ByName, _obeying(_with_reasons("say why {!r} is gone"))] = Field(
        {},
        description="environments that the partition had and has no more, each with the reason;"
        " PARTITION:ENVIRONMENT of a partition that is gone itself",
    )


class EnvironmentExtras(Written):
    """Keys of an environment; those with a default may be omitted."""

    mpi: _Text = Field(description="the MPI library and its version")
    pmi: _Word = Field(description="srun's --mpi plugin for it")
    absent: Annotated[
        dict[str, Any], _obeying(_with_reasons("say why {!r} is absent", _no_feature))
    ] = Field(
        {}, description="why the environment lacks benchmarks: benchmark to reason, for the verdict"
    )
    known: _Known = Field(
        {},
        description="flaws of it that are known: an expression for cases, 'IMB Bcast .* ranks' for"
        " instance, to the reason",
    )
    mpi_over_tcp: bool = Field(
        True, description="whether its MPI goes over TCP, whose line rate then bounds it"
    )
    built: dict[str, Any] = Field(
        {},
        description="how Spack built it: each package's spec, compiler, hash and variants;"
        " netproof.site.spack fills it in",
    )
    unusable: str = Field(
        "",
        description="why nothing can be measured with it now, a build that is missing or stale for"
        " instance: its cases fail with that",
    )


PARTITION_KEYS = PartitionExtras.model_fields
ENVIRONMENT_KEYS = EnvironmentExtras.model_fields
