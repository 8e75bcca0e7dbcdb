"""Experiments; nothing runs unless netproof measure asks for it."""

import reframe as rfm
from reframe.core.builtins import parameter

from netproof.experiments.gpcnet import GpcnetAsked
from netproof.experiments.load_plan import LoadAsked
from netproof.experiments.tails import TailsAsked
from netproof.experiments.tuning import AlgorithmsAsked, TuningAsked
from netproof.run.jobs import ExperimentJob
from netproof.run.mixins import rank_counts


@rfm.simple_test
class Load(ExperimentJob):
    """Latency, bandwidth and Allreduce, alone and with aggressors on the other nodes."""

    experiment = LoadAsked


@rfm.simple_test
class Tails(ExperimentJob):
    """Short messages between two nodes, each call timed."""

    experiment = TailsAsked


@rfm.simple_test
class Gpcnet(ExperimentJob):
    """GPCNeT on all nodes, several times."""

    experiment = GpcnetAsked


@rfm.simple_test
class Tuning(ExperimentJob):
    """NetPIPE with each value of a setting, interleaved with the default."""

    experiment = TuningAsked


@rfm.simple_test
class Algorithm(ExperimentJob):
    """A function with each algorithm of the library, interleaved with the default."""

    experiment = AlgorithmsAsked
    ranks = parameter(rank_counts())
