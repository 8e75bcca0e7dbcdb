"""A partition as checks see it, its features, and the baseline of scores."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.interface import MessageSizes
from netproof.benchmarks.registry import MPI_BENCHMARKS, OF_PAIRS
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError
from netproof.measurement.links import Link, link_of
from netproof.site.keys import LoadSettings, PartitionExtras
from netproof.site.pair_settings import PairSettings

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
