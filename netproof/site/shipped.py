"""Files that come with netproof and are no modules: the examples, the checks, the studies."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from netproof.errors import NetproofError

CHECKOUT = Path(__file__).resolve().parents[2]


def folder(name: str) -> Path:
    """A folder of the checkout, or of a wheel: ``share/netproof`` where that was installed.

    Raises NetproofError where it is in neither.
    """
    installed = Path(sysconfig.get_path("data")) / "share" / "netproof" / name
    # A wheel that was unpacked into a folder of its own has its data next to the package.
    alongside = CHECKOUT / "share" / "netproof" / name
    for place in (CHECKOUT / name, alongside, installed):
        if place.is_dir():
            return place
    raise NetproofError(f"{name}/ did not come with this netproof: install it again")
