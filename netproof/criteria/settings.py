"""The settings of all criteria for one partition: the defaults, and a site's changes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import make_dataclass
from functools import cache
from typing import Any, get_type_hints

from pydantic import ValidationError, create_model

from netproof.criteria.confirming import ConfirmSettings, RefineSettings
from netproof.criteria.rate import MPI_LOSS
from netproof.criteria.registry import CRITERIA
from netproof.errors import NetproofError
from netproof.intake.models import Written, faults
from netproof.measurement.disturbance import DisturbanceSettings

_DEFAULTS = {
    name: default for criterion in CRITERIA for name, default in criterion.settings.items()
} | {
    "confirm": ConfirmSettings(),
    "disturbance": DisturbanceSettings(),
    "refine": RefineSettings(),
}

_Fields = make_dataclass(
    "_Fields",
    [(name, type(default), default) for name, default in _DEFAULTS.items()],
    frozen=True,
)


class Settings(_Fields):
    """The settings of every criterion by its keys, as a site may change them for a partition.

    ``confirm``, ``refine`` and ``disturbance`` are no criteria: how often to repeat, where to
    measure at closer sizes, and from where on a launch counts as disturbed.
    """

    @classmethod
    def of_site(
        cls, changes: Mapping[str, Mapping[str, Any]], line_rate_from_bytes: int
    ) -> Settings:
        """Return the defaults with a partition's ``changes``: criterion to setting to value.

        ``line_rate_from_bytes``: the least size of the loss of MPI. Raises NetproofError.
        """
        # A session has few partitions, and each of its cases asks.
        return _of_site(json.dumps(changes, default=repr), line_rate_from_bytes)

    def _with(self, name: str, values: Mapping[str, Any]) -> Settings:
        known = [field.name for field in dataclasses.fields(self)]
        if name not in known:
            raise NetproofError(f"{name!r} is no criterion; those are {', '.join(known)}")
        if not isinstance(values, dict):
            raise NetproofError(f"{name!r} is {values!r}, and has to be a dictionary of settings")
        old = getattr(self, name)
        model = _model(type(old))
        try:
            model.model_validate(values)
        except ValidationError as error:
            fault = next(faults(model, error))
            raise NetproofError(f"{name!r}: {fault.steps[0]!r}: {fault.reason}") from None
        try:
            return dataclasses.replace(self, **{name: dataclasses.replace(old, **values)})
        except NetproofError as error:
            raise NetproofError(f"{name!r}: {error}") from error


@cache
def _of_site(changes: str, line_rate_from_bytes: int) -> Settings:
    least_size = max(line_rate_from_bytes, MPI_LOSS.least_size)
    settings = Settings(mpi_loss=dataclasses.replace(MPI_LOSS, least_size=least_size))
    for name, values in json.loads(changes).items():
        settings = settings._with(name, values)
    return settings


@cache
def _model(settings: type) -> type[Written]:
    """Return the model of these settings in a site's file, all optional.

    NaN and infinity are refused as bounds; None means no bound.
    """
    kinds = get_type_hints(settings)
    names = [field.name for field in dataclasses.fields(settings)]
    known = {name: (kinds[name], getattr(settings, name)) for name in names}
    return create_model(settings.__name__, __base__=Written, **known)
