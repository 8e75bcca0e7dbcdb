"""A site: its configuration, the matrix that it asks for, its Slurm and its Spack environments.

A site's ``settings.py`` has ``gather`` from here.
"""

from netproof.site.site import gather

__all__ = ["gather"]
