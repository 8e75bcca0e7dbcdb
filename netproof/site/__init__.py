"""A site: its configuration, the matrix that it asks for, its Slurm and its Spack environments.

A site's ``settings.py`` has ``gather`` from here.
"""

from typing import Any

__all__ = ["gather"]


def __getattr__(name: str) -> Any:
    """Load what reads a site's files only where it is asked for: ``folders`` needs none of it."""
    if name == "gather":
        from netproof.site.site import gather

        return gather
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
