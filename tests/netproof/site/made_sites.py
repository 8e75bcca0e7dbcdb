"""A small site's file, and what is said of it."""

from __future__ import annotations

import pprint
from pathlib import Path

import pytest

from netproof.site import site
from netproof.site.site import SiteError

ROOT = Path(__file__).resolve().parents[3]

CONFIGURATION = {
    "systems": [
        {
            "name": "cluster",
            "hostnames": ["login"],
            "partitions": [
                {
                    "name": "gige",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "environs": ["mpich"],
                    "processor": {"num_cpus": 4},
                    "extras": {
                        "switch": "Summit",
                        "nic": "BCM5720",
                        "driver": "tg3",
                        "link_mbit_s": 1000,
                        "mtu": 1500,
                        "interface": "eno1",
                        "nodes": 4,
                        "ranks_per_node": 2,
                        "rank_counts": [4, 8],
                        "baseline": "mpich",
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "mpich",
            "features": ["netpipe-tcp", "netpipe-mpi"],
            "extras": {
                "mpi": "MPICH 4.2",
                "pmi": "pmi2",
                "absent": {"imb": "not built", "osu": "not built"},
            },
        }
    ],
}


def written(folder: Path, configuration: dict, name: str = "cluster.py") -> Path:
    path = folder / name
    path.write_text(f"site_configuration = {pprint.pformat(configuration)}\n")
    return path


def refusal(folder: Path, configuration: dict) -> str:
    path = written(folder, configuration)
    with pytest.raises(SiteError) as caught:
        site.gather(folder)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")
