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
from netproof.site.pair_settings import PairSettings, Words, meaning

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
_Factor = Annotated[float, Field(gt=1, title="a factor above 1")]
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


@meaning("load")
class LoadSettings(Written):
    """Victims alongside aggressors on a partition, and single calls of a long launch."""

    most: _Factor | None = None
    most_99th: _Factor | None = None
    most_999th: _Factor | None = None
    pause_us: Annotated[float, Field(gt=0)] = 1000.0
    repetitions: Annotated[int, Field(ge=2)] = 128
    bytes: Annotated[int, Field(ge=4)] = 131072
    arguments: Words = ()


class _OfNetwork(Written):
    switch: _Text
    nic: _Text
    driver: _Text
    link_mbit_s: _Positive
    mtu: _Mtu
    interface: _Interface
    nodes: _Positive
    ranks_per_node: _Positive
    rank_counts: _RankCounts
    max_message_bytes: Annotated[int, _obeying(_power_of_two)] = 4194304
    sizes: Annotated[_ByName, _obeying(_sizes)] = Field({})

    @field_validator("sizes")
    @classmethod
    def _fit(cls, value: dict[str, dict[str, Any]], info: ValidationInfo) -> dict[str, Any]:
        most = info.data.get("max_message_bytes")
        for name, settings in value.items():
            largest = registry.named(name).sizes.of_site(settings).largest()
            if most is not None and largest > most:
                raise ValueError(f"{name}: {largest} bytes is above max_message_bytes, {most}")
        return value

    contention_domain: _Line = ""
    netpipe_repeats: _Count = 0
    netpipe_mpi_inside_repeats: _Count = 0


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


@meaning("partition")
class PartitionExtras(_OfBenchmarks):
    """Keys of a partition; those with a default may be omitted."""

    line_rate_from_bytes: _Count = 0

    @field_validator("line_rate_from_bytes")
    @classmethod
    def _measured(cls, value: int, info: ValidationInfo) -> int:
        most = info.data.get("max_message_bytes")
        if most is not None and value > most:
            raise ValueError(f"{value} bytes is above max_message_bytes, {most}")
        return value

    step_limit_s: _Positive = 600
    first_figure_s: _Count = 300
    crash_retries: _Count = 3
    twin: _Words = ()
    pace: _Words = ()
    tuning_hook: _Words = ()
    rails: _Rails = ()
    rdma: _Rdma = ""
    rdma_mtu: _Count = 0

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

    driver_counters: bool = True
    may_differ: _MayDiffer = Field({})
    clock_offset_ms: _Positive = 1000
    coverage_percent: _Percentage = COVERAGE_PERCENT
    wait_for_nodes_s: _Positive = 3600
    pairs: Annotated[_ByName, _obeying(_of_site(PairSettings.of_site))] = Field({})
    load: Annotated[_ByName, _obeying(_of_site(LoadSettings.of_site))] = Field({})
    baseline: str = ""
    criteria: Annotated[
        dict[str, Any], _obeying(_of_site(lambda value: Settings.of_site(value, 0)))
    ] = Field({})
    retired: Annotated[_ByName, _obeying(_with_reasons("say why {!r} is gone"))] = Field({})


@meaning("environment")
class EnvironmentExtras(Written):
    """Keys of an environment; those with a default may be omitted."""

    mpi: _Text
    pmi: _Word
    absent: Annotated[
        dict[str, Any], _obeying(_with_reasons("say why {!r} is absent", _no_feature))
    ] = Field({})
    known: _Known = Field({})
    mpi_over_tcp: bool = True
    built: dict[str, Any] = Field({})
    unusable: str = ""


PARTITION_KEYS = PartitionExtras.model_fields
ENVIRONMENT_KEYS = EnvironmentExtras.model_fields
