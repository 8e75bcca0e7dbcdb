"""MVAPICH from 3.0 on, derived from MPICH: the same variables.

Its list of environment variables (mvapich-docs.readthedocs.io) has MPICH's names and further ones
that begin with ``osu_``.
"""

from netproof.tuning.algorithms.interface import MpiLibrary, named
from netproof.tuning.algorithms.mpich import ALGORITHMS, FELL_BACK, HEARD, setting

LIBRARY = MpiLibrary(
    number=5,
    name="MVAPICH",
    setting=setting,
    algorithms={**ALGORITHMS, "Barrier": {**ALGORITHMS["Barrier"], **named("osu_pairwise")}},
    heard=HEARD,
    fell_back=FELL_BACK,
)
