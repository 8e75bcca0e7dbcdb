"""The settings of all criteria for one partition: the defaults, and what a site changes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Any

from netproof.criteria.confirming import ConfirmSettings
from netproof.criteria.mpi_losses import MpiLossSettings
from netproof.criteria.registry import CRITERIA
from netproof.errors import NetproofError
from netproof.measurement.disturbance import DisturbanceSettings

_DEFAULTS = {
    name: default for criterion in CRITERIA for name, default in criterion.settings.items()
} | {"confirm": ConfirmSettings(), "disturbance": DisturbanceSettings()}

_Fields = make_dataclass(
    "_Fields",
    [(name, type(default), default) for name, default in _DEFAULTS.items()],
    frozen=True,
)


class Settings(_Fields):
    """The settings of every criterion by its keys, as a site may change them for a partition.

    ``mpi_loss_inside`` is for two ranks of one node, where MPI copies through shared memory and
    TCP through the kernel: shown, and asserted only where a site asks for it. ``confirm`` and
    ``disturbance`` are no criteria: how often is measured again, and from where on a launch counts
    as disturbed.
    """

    @classmethod
    def of_site(
        cls, changes: Mapping[str, Mapping[str, Any]], line_rate_from_bytes: int
    ) -> Settings:
        """The defaults with a partition's ``changes``: criterion to setting to value.

        ``line_rate_from_bytes``: the least size for the loss of MPI where the changes give none.
        Raises NetproofError naming the criterion and the setting.
        """
        least_size = max(line_rate_from_bytes, MpiLossSettings.least_size)
        settings = cls(mpi_loss=MpiLossSettings(least_size=least_size))
        for name, values in changes.items():
            settings = settings._with(name, values)
        return settings

    def _with(self, name: str, values: Mapping[str, Any]) -> Settings:
        known = [field.name for field in dataclasses.fields(self)]
        if name not in known:
            raise NetproofError(f"{name!r} is no criterion; those are {', '.join(known)}")
        if not isinstance(values, Mapping):
            raise NetproofError(f"{name!r} is {values!r}, and has to be a dictionary of settings")
        old = getattr(self, name)
        names = {field.name: field for field in dataclasses.fields(old)}
        for key, value in values.items():
            if key not in names:
                raise NetproofError(f"{name!r} has no setting {key!r}; it has {', '.join(names)}")
            may_be_none = key in ("warn", "fail", "warn_below", "fail_below")
            # Nothing passes a bound of NaN or infinity; None is how a site says that it has none.
            number = (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and math.isfinite(value)
            )
            whole = isinstance(getattr(old, key), int) and not may_be_none
            if not (number or (value is None and may_be_none)) or (
                whole and not isinstance(value, int)
            ):
                kind = "a whole number" if whole else "a number"
                raise NetproofError(
                    f"{name!r}: {key!r} is {value!r}, and has to be {kind}"
                    f"{' or None' if may_be_none else ''}"
                )
        return dataclasses.replace(self, **{name: dataclasses.replace(old, **values)})
