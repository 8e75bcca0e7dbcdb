"""Declarations of a room's modules: adding a file to the room adds what is in it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from typing import Any


def declared(room: str, name: str, not_asked: Collection[str] = ()) -> tuple[Any, ...]:
    """The objects called ``name`` in the modules of a room, in order of their ``number``.

    ``room``: a package, ``netproof.benchmarks`` for instance. ``not_asked``: modules of it that use
    what is found here, so that they cannot be imported yet.
    """
    package = importlib.import_module(room)
    modules = [
        importlib.import_module(f"{room}.{one.name}")
        for one in pkgutil.iter_modules(package.__path__)
        if one.name not in not_asked
    ]
    found = [getattr(module, name) for module in modules if hasattr(module, name)]
    return tuple(sorted(found, key=lambda one: one.number))
