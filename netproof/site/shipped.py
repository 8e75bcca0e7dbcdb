"""Files that come with netproof and are not modules: the examples, the checks, the studies."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from netproof.errors import NetproofError

CHECKOUT = Path(__file__).resolve().parents[2]


def folder(name: str) -> Path:
    """Return a folder of the checkout or of an installed wheel. Raises NetproofError without it."""
    installed = Path(sysconfig.get_path("data")) / "share" / "netproof" / name
    # An unpacked wheel has its data beside the package.
    alongside = CHECKOUT / "share" / "netproof" / name
    for place in (CHECKOUT / name, alongside, installed):
        if place.is_dir():
            return place
    raise NetproofError(f"{name}/ did not come with this netproof: install it again")
