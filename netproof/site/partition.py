"""A partition and an environment: keys in a site's file, settings of pairs, features, baseline."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
)

from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.interface import MessageSizes
from netproof.benchmarks.registry import FEATURES, MPI_BENCHMARKS, OF_PAIRS, STARTED
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError
from netproof.intake.models import Several, Written, expression
from netproof.measurement.links import RDMA, Link, Transport, link_of, packet

M = TypeVar("M", bound=Written)

_MEANINGS = tomllib.loads(Path(__file__).with_name("keys.toml").read_bytes().decode())


def meaning(part: str) -> Callable[[type[M]], type[M]]:
    """Return what gives the fields of a model their meaning, by a part of ``keys.toml``."""

    def given(model: type[M]) -> type[M]:
        for name, text in _MEANINGS[part].items():
            model.model_fields[name].description = text
        return model

    return given


class PairQuantity(StrEnum):
    """Time of a small message in µs, or rate of a large one in MB/s.

    ``BOTH_WAYS``: the rate while both nodes send, which loads what pairs share as far as it can.
    """

    LATENCY = "latency"
    RATE = "rate"
    BOTH_WAYS = "rate both ways"

    @property
    def of_nodes(self) -> bool:
        """True if nodes are judged by it, and not only what several pairs share."""
        return self is not PairQuantity.BOTH_WAYS


_Share = Annotated[float, Field(gt=0, lt=1, title="a share between 0 and 1")]
_Argument = Annotated[str, Field(pattern=r"^\S+$", title="a word")]
Words = Annotated[tuple[_Argument, ...], Field(strict=False)]


def _obeying(rule: Callable[[Any], object]) -> AfterValidator:
    """Return a validator; ``rule`` raises NetproofError, with the remedy, for a bad value."""

    def checked(value: Any) -> Any:
        try:
            rule(value)
        except NetproofError as error:
            raise ValueError(str(error)) from error
        return value

    return AfterValidator(checked)


def _insist(holds: bool, remedy: str) -> None:
    if not holds:
        raise ValueError(remedy)


def _of_nodes(quantity: PairQuantity) -> None:
    found = f"found {quantity.value!r}, expected latency or rate: of nodes it says nothing"
    _insist(quantity.of_nodes, found)


def _rounds(count: int) -> None:
    none = f"found {count}, expected 2 or more, or 0 for no rounds of pairs"
    _insist(count == 0 or count > 1, none)


@meaning("pairs")
class PairSettings(Written):
    """Rounds of pairs on a partition."""

    slower: _Share = 0.10
    slower_latency: _Share = 0.25
    error: _Share = 0.001
    missed: _Share = 0.01
    rounds: Annotated[int, _obeying(_rounds)] = 16
    quantities: Several[Annotated[PairQuantity, Field(strict=False), _obeying(_of_nodes)]] = tuple(
        one for one in PairQuantity if one.of_nodes
    )
    bisection: _Share | None = None
    together: Annotated[int, Field(ge=0)] = 0
    arguments: Words = ()
    stream_arguments: Words = ("-iter", "8")
    environments: Words = ()

    disturbed_share: ClassVar[float] = 0.01
    """Expected share of disturbed measurements, a tenth of that of noise wider than the rest."""

    resolution: ClassVar[float] = 0.001
    """Least relative difference that is believed."""

    def counts(self, quantity: PairQuantity) -> float:
        """Return the least slowness of a quantity that counts, a logarithm.

        In a quantity that is not among ``quantities`` a doubling counts.
        """
        latency = quantity is PairQuantity.LATENCY
        counts = -math.log1p(-(self.slower_latency if latency else self.slower))
        return counts if self.clears(quantity) else max(counts, math.log(2))

    def clears(self, quantity: PairQuantity) -> bool:
        """Return whether nodes have to be cleared by a quantity; the others only accuse."""
        return quantity in self.quantities or not quantity.of_nodes


DEFAULTS = PairSettings.of_site({})


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


def _rails(value: tuple[str, ...]) -> None:
    _insist(len(set(value)) == len(value), f"{list(value)} names one twice")


def _power_of_two(value: int) -> None:
    remedy = f"{value} is no power of two from 1024 bytes up, 1048576 for instance"
    _insist(value >= 1024 and value & (value - 1) == 0, remedy)


def _rank_counts(counts: tuple[int, ...]) -> None:
    value = list(counts)
    remedy = f"{value} is no list of whole numbers from 2 up, [16, 32, 64] for instance"
    _insist(all(type(count) is int and count >= 2 for count in value), remedy)
    _insist(sorted(set(value)) == value, f"{value} has to increase, without repeats")


def _with_reasons(
    say: str, rule: Callable[[str], object] = lambda key: None
) -> Callable[[dict[str, str]], None]:
    """Return the rule of keys that each have a reason; ``rule``: of a key."""

    def checked(value: dict[str, str]) -> None:
        for key, reason in value.items():
            rule(key)
            sentence = isinstance(reason, str) and reason.strip()
            _insist(bool(sentence), f"{say.format(key)}, in a sentence")

    return checked


def _feature(name: str) -> None:
    _insist(name in FEATURES, f"{name!r} is no benchmark; those are {', '.join(FEATURES)}")


def _fact(fact: Any) -> None:
    remedy = f"{fact!r} is nothing that nodes are compared by; those are {', '.join(FACTS)}"
    _insist(isinstance(fact, str) and fact.split(" ")[0] in FACTS, remedy)


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
_MayDiffer = Annotated[_ByName, _obeying(_with_reasons("say why {!r} may differ", _fact))]
_Known = Annotated[dict[str, Any], _obeying(_with_reasons("say what is known of {!r}", expression))]
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
    sizes: _ByName = Field({})

    @field_validator("sizes")
    @classmethod
    def _fit(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        by_name = {one.name: one for one in STARTED}
        most = info.data.get("max_message_bytes", math.inf)
        for name, settings in value.items():
            _insist(name in by_name, f"{name!r} is no benchmark; those are {', '.join(by_name)}")
            _insist(isinstance(settings, dict), f"{name}: give a dictionary of settings")
            label, sizes = by_name[name].label, by_name[name].sizes
            none = f"{name}: {label} measures sizes that double, and no others"
            _insist(not settings or bool(sizes.model_fields), none)
            try:
                largest = sizes.of_site(settings).largest()
            except NetproofError as error:
                raise ValueError(f"{name}: {error}") from error
            above = f"{name}: {largest} bytes is above max_message_bytes, {most}"
            _insist(largest <= most, above)
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
        most = info.data.get("max_message_bytes", math.inf)
        _insist(value <= most, f"{value} bytes is above max_message_bytes, {most}")
        return value

    job_limit_s: _Count = 0
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
        if value:
            _insist(bool(rdma), "is the MTU of RDMA, and rdma does not say which")
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
    pairs: Annotated[_ByName, _obeying(PairSettings.of_site)] = Field({})
    load: Annotated[_ByName, _obeying(LoadSettings.of_site)] = Field({})
    baseline: str = ""
    criteria: Annotated[_ByName, _obeying(lambda value: Settings.of_site(value, 0))] = Field({})
    retired: Annotated[_ByName, _obeying(_with_reasons("say why {!r} is gone"))] = Field({})


@meaning("environment")
class EnvironmentExtras(Written):
    """Keys of an environment; those with a default may be omitted."""

    mpi: _Text
    pmi: _Word
    absent: Annotated[_ByName, _obeying(_with_reasons("say why {!r} is absent", _feature))] = Field(
        {}
    )
    known: _Known = Field({})
    mpi_over_tcp: bool = True
    built: dict[str, Any] = Field({})
    unusable: str = ""


PARTITION_KEYS = PartitionExtras.model_fields
ENVIRONMENT_KEYS = EnvironmentExtras.model_fields


_TIME_LIMIT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Partition(PartitionExtras):
    """A partition as checks see it, with the keys of its site's file, which has been validated."""

    # ReFrame adds its own extras, and sessions have had others.
    model_config = ConfigDict(extra="ignore")

    @property
    def arguments(self) -> dict[str, tuple[str, ...]]:
        """Further arguments of the benchmarks' programs, by benchmark."""
        return {one.name: getattr(self, one.arguments_key) for one in MPI_BENCHMARKS}

    def sizes_of(self, benchmark: str) -> MessageSizes:
        """Return the site's message sizes of a benchmark."""
        return registry.named(benchmark).sizes.of_site(self.sizes.get(benchmark, {}))

    def rails_or_interface(self) -> tuple[str, ...]:
        """Return the interfaces that carry what is sent over the switch."""
        return self.rails or (self.interface,)

    def settings(self) -> Settings:
        """Return the settings of the criteria here."""
        return Settings.of_site(self.criteria, self.line_rate_from_bytes)

    @property
    def fewest_ranks(self) -> int:
        """Least rank count, whose job also runs functions of two ranks; 2 without any."""
        return min(self.rank_counts, default=2)

    def pair_settings(self) -> PairSettings:
        """Return the settings of its rounds of pairs; one node has none."""
        return PairSettings.of_site({**self.pairs, "rounds": 0} if self.nodes < 2 else self.pairs)

    def load_settings(self) -> LoadSettings:
        """Return the settings of victims alongside aggressors."""
        return LoadSettings.of_site(self.load)

    def link(self, *, over_tcp: bool = True) -> Link:
        """Return one link of each of its nodes; TCP's where the site names no other transport."""
        return link_of(vars(self), over_tcp=over_tcp)


def makes_pairs(features: Collection[str]) -> bool:
    """Return whether an environment with these features has the benchmark of rounds of pairs."""
    return set(OF_PAIRS.features) <= set(features)


def pair_environments(
    settings: PairSettings, there: Iterable[tuple[str, Collection[str], Mapping[str, Any]]]
) -> tuple[str, ...]:
    """Return the environments that measure nodes in pairs: by default the first usable one.

    None where the site wants no rounds.

    ``there``: name, features and extras of each of its environments, in order.
    """
    unusable = {
        name: bool(extras["unusable"]) for name, features, extras in there if makes_pairs(features)
    }
    if not settings.rounds:
        return ()
    if settings.environments:
        return tuple(name for name in unusable if name in settings.environments)
    return tuple(sorted(unusable, key=unusable.__getitem__)[:1])


def tcp_environments(
    there: Iterable[tuple[str, Collection[str], Mapping[str, Any]]],
) -> tuple[str, ...]:
    """Return the environments that measure TCP without MPI: for all the first usable one.

    One that has nothing else measures it too. ``there``: as for ``pair_environments``.
    """
    tcp, mpi = map(netpipe.BENCHMARK.feature, netpipe.PROTOCOLS)
    having = [one for one in there if tcp in one[1]]
    first = min(having, key=lambda one: bool(one[2]["unusable"]), default=None)
    return tuple(one[0] for one in having if one is first or mpi not in one[1])


def ranks_feature(ranks: int) -> str:
    """Return the partition feature by which checks of that rank count find the partition."""
    return f"ranks-{ranks}"


def fewest_ranks_feature(ranks: int) -> str:
    """Return the feature of the least rank count, whose job also runs the two-rank functions."""
    return f"fewest-ranks-{ranks}"


def time_limit_s(partition: Mapping[str, Any]) -> int | None:
    """Return a partition's time limit, ``1d2h30m``, in s, or None. Raises NetproofError."""
    stated = partition.get("time_limit")
    if stated is None:
        return None
    found = _TIME_LIMIT.fullmatch(stated) if isinstance(stated, str) and stated else None
    if not found:
        raise NetproofError(f"is {stated!r}; it looks like 1d2h30m, or 30m")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds


def job_limit_s(partition: Mapping[str, Any]) -> int | None:
    """Return how long a partition's jobs of launches may take, in s, or None; NetproofError."""
    return partition["extras"].get("job_limit_s") or time_limit_s(partition)


@dataclass(frozen=True)
class ScoreBaseline:
    """The configuration that scores are relative to."""

    partition: str
    environment: str

    def __str__(self) -> str:
        return f"{self.partition} {self.environment}"


def score_baseline(partitions: list[dict[str, Any]]) -> ScoreBaseline | None:
    """Return the configuration that scores are relative to; None where no partition names it."""
    for partition in partitions:
        if partition["extras"]["baseline"]:
            return ScoreBaseline(partition["name"], partition["extras"]["baseline"])
    return None
