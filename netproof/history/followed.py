"""State of a followed history, stored so that a night only adds its own values to it.

It is one file for each system and can always be rebuilt: a damaged file, another format or another
netproof's is not used. Every stored value is compared with its origin before it is used.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from netproof.errors import NetproofError
from netproof.history.changes import DetectionSettings
from netproof.history.past import FollowedState, read_past
from netproof.history.selection import Quantity
from netproof.history.values import QUANTITIES, SIZES, NightValues
from netproof.intake import loading
from netproof.site.partition import ScoreBaseline
from netproof.store import Store
from netproof.store.tables import KEY

FORMAT = 6
"""Raised when detection finds other changes in the same nights, or this file changes."""

HEAD = b"netproof-followed "
MOST_BYTES = 2_000_000_000
"""Largest file: 100,000 series over 250 nights."""

SeriesKey = tuple[tuple[Any, ...], Quantity]
"""A case's key, as the store has it, or a pool's place, and the followed quantity."""


@dataclass(frozen=True)
class StoredHistory:
    """State of followed series up to a night.

    ``values``: of all sessions up to it; ``series``: the followed ones, in the order of ``state``,
    None where only the values are known; ``settings``: by which.
    """

    values: NightValues
    series: tuple[SeriesKey, ...] = ()
    state: FollowedState | None = None
    settings: DetectionSettings | None = None

    def going_on(
        self, sessions: Sequence[str], settings: DetectionSettings, keys: Sequence[SeriesKey]
    ) -> tuple[FollowedState | None, list[int]]:
        """Return the state to continue from over these sessions, and each series' place in it."""
        nights = len(self.values.sessions)
        if self.settings != settings or self.values.sessions != list(sessions[:nights]):
            return None, []
        place = {key: number for number, key in enumerate(self.series)}
        return self.state, [place.get(key, -1) for key in keys]


NOTHING = StoredHistory(NightValues())


def load(store: Store, system: str) -> StoredHistory:
    """Read the state of a system; NOTHING where it is missing or cannot be used."""
    try:
        content = loading.read_bytes(store.followed(system), MOST_BYTES)
        head, _, rest = content.partition(b"\n")
        if head != _head(rest):
            return NOTHING
        with np.load(io.BytesIO(rest), allow_pickle=False) as arrays:
            return _read({name: arrays[name] for name in arrays.files})
    except (
        *(NetproofError, OSError, ValueError, TypeError, LookupError, AttributeError),
        *(zipfile.BadZipFile, zlib.error, EOFError),
    ):
        return NOTHING


def put(store: Store, system: str, history: StoredHistory) -> None:
    """Write the state; NetproofError where the store cannot be written."""
    values, state = history.values, history.state
    record = {
        "sessions": values.sessions,
        "marks": values.marks,
        "baseline": _baseline(values.baseline),
        "cases": values.cases,
        "known_sizes": values.known_sizes,
        "inconclusive": [[*place, list(why)] for place, why in values.inconclusive.items()],
        "crashes": values.crashes,
        "counted": values.counted,
        "said": [_baseline(one) for one in values.said],
        "series": [[list(case), quantity] for case, quantity in history.series],
        "accepted": [sorted(nights) for nights in state.accepted],
        "past": {str(number): asdict(past) for number, past in state.past.items()},
        "settings": asdict(history.settings),
        "estimates": sorted(state.arrays),
    }
    # Numbers of numpy, and NaN, which only this netproof reads again.
    text = json.dumps(record, default=lambda value: value.tolist())
    out = io.BytesIO()
    np.savez(
        out,
        allow_pickle=False,
        record=np.frombuffer(text.encode(), dtype=np.uint8),
        values=values.values,
        sizes=values.sizes,
        ranks_per_node=values.ranks_per_node,
        logs=state.logs,
        **{f"of {name}": array for name, array in state.arrays.items()},
    )
    content = out.getvalue()
    store.put_followed(system, _head(content) + b"\n" + content)


def _head(content: bytes) -> bytes:
    """Return the first line of a file that this netproof wrote with such content."""
    return HEAD + f"{FORMAT} {version('netproof')} {zlib.crc32(content):08x}".encode()


def _baseline(one: ScoreBaseline | None) -> list[str] | None:
    return None if one is None else [one.partition, one.environment]


def _read(arrays: dict[str, Any]) -> StoredHistory:
    record = json.loads(arrays["record"].tobytes())
    values = NightValues(
        record["sessions"],
        record["marks"],
        _read_baseline(record["baseline"]),
        [tuple(case) for case in record["cases"]],
        arrays["values"],
        arrays["sizes"],
        arrays["ranks_per_node"],
        [tuple(sizes) for sizes in record["known_sizes"]],
        {(case, night): tuple(why) for case, night, why in record["inconclusive"]},
        record["crashes"],
        record["counted"],
        [_read_baseline(one) for one in record["said"]],
    )
    series = tuple((tuple(case), Quantity(name)) for case, name in record["series"])
    settings = record["settings"]
    state = FollowedState(
        arrays["logs"],
        tuple(map(frozenset, record["accepted"])),
        {name: arrays[f"of {name}"] for name in record["estimates"]},
        {int(number): read_past(past) for number, past in record["past"].items()},
    )
    shape = (len(values.cases), len(values.sessions))
    of_nights = (values.marks, values.crashes, values.counted, values.said)
    fits = (
        values.values.shape == (len(QUANTITIES), *shape)
        and values.sizes.shape == (len(SIZES), *shape)
        and values.ranks_per_node.shape == shape
        and state.logs.shape == (len(series), shape[1])
        and len(state.accepted) == len(series)
        and {len(one) for one in of_nights} == {shape[1]}
        and all(len(case) == len(KEY) for case in values.cases)
    )
    if not fits:
        return NOTHING
    return StoredHistory(
        values,
        series,
        state,
        DetectionSettings(**{**settings, "drift_nights": tuple(settings["drift_nights"])}),
    )


def _read_baseline(value: list[str] | None) -> ScoreBaseline | None:
    return None if value is None else ScoreBaseline(*value)
