"""Folders of this shell's site, and of what comes with netproof: examples, checks, studies."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from netproof.errors import NetproofError

CHECKOUT = Path(__file__).resolve().parents[2]


def shipped(name: str) -> Path:
    """Return a folder of the checkout or of an installed wheel. Raises NetproofError without it."""
    installed = Path(sysconfig.get_path("data")) / "share" / "netproof" / name
    # An unpacked wheel has its data beside the package.
    alongside = CHECKOUT / "share" / "netproof" / name
    for place in (CHECKOUT / name, alongside, installed):
        if place.is_dir():
            return place
    raise NetproofError(f"{name}/ did not come with this netproof: install it again")


def of_site() -> Path:
    """Return the folder of the site's files, RFM_CONFIG_PATH; NetproofError where not set."""
    return _named("RFM_CONFIG_PATH")


def of_references() -> Path:
    """Return the folder of references, RFM_REFERENCE_PREFIX; NetproofError where not set."""
    return _named("RFM_REFERENCE_PREFIX")


def of_reports() -> Path:
    """Return the folder of reports, from RFM_REPORT_FILE; NetproofError where not set."""
    return _named("RFM_REPORT_FILE").parent


def of_checks() -> Path:
    """Return the folder of the site's checks, or of those that came with netproof."""
    own = of_site().absolute().parent / "checks"
    return own if own.is_dir() else shipped("checks")


def _named(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        raise NetproofError(f"{variable} is not set; source the site's activate")
    return Path(value)
