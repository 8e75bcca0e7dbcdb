"""Look at a node, or at an environment: one line of JSON, after what others print.

``look_job.py node ROOT`` prints what this node has and whether it can import netproof from there,
``look_job.py environment NODE,NODE PMI…`` which programs and MPI library are here, and what two
ranks of each program do. The first environment with NPtcp leaves the rate of each network between
the two nodes in ``NETWORKS``. Standard library only, with node.py beside it.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from node import content, found, run  # type: ignore[import-not-found]  # beside it in the job

NETWORKS = Path("..", "networks.json")

MESSAGE = 1048576
"""Bytes of a message."""

TCP = f"NPtcp -l 4096 -u {MESSAGE} -p 0 -n 5".split()

ARGUMENTS = {
    "NPmpi": f"-l {MESSAGE} -u {MESSAGE} -p 0 -n 10 -o NPmpi.np",
    "IMB-MPI1": "PingPong -msglog 20:20 -iter 20",
    "osu_bw": f"-m {MESSAGE}:{MESSAGE} -i 10 -x 1",
}

RATES = {
    "NPmpi": (r": *1048576 bytes .*?--> *([\d.]+) Mbps", 1.048576),
    "IMB-MPI1": (r"(?m)^ *1048576 +\d+ +[\d.]+ +([\d.]+)", 8.0),
    "osu_bw": (r"(?m)^ *1048576 +([\d.]+)", 8.0),
}
"""A program's bandwidth of these messages, and Mbit/s of 10⁶ bits for one of its unit."""


def interfaces() -> Iterator[dict[str, Any]]:
    """Yield the interfaces that are up, as ``look.Interface`` has them."""
    for line in run("ip", "-o", "link", "show")[1].splitlines():
        link = re.match(r"\d+: ([^:@]+)[^:]*: <([^>]*)>.* mtu (\d+)", line)
        flags = link[2].split(",") if link else []
        if link is None or "LOWER_UP" not in flags or "LOOPBACK" in flags:
            continue
        name = link[1]
        driver = run("ethtool", "-i", name)[1]
        speed = found(r"Speed: (\d+)Mb/s", run("ethtool", name)[1])
        bus = found(r"^bus-info: ([0-9a-f:.]+)", driver)
        listed, card = run("lspci", "-s", bus) if bus else (False, "")
        words = (found(r"^driver: (.+)", driver), found(r"^version: (\S+)", driver))
        yield {
            "name": name,
            "mtu": int(link[3]),
            "link_mbit_s": int(speed) if speed else None,
            "address": found(
                r" inet ([0-9.]+)", run("ip", "-o", "-4", "addr", "show", "dev", name)[1]
            ),
            "driver": " ".join(filter(None, words)),
            "card": card.strip().rpartition(": ")[2] if listed else "",
        }


def devices(classes: Path = Path("/sys/class")) -> Iterator[dict[str, Any]]:
    """Yield the RDMA devices by their active port, or their first, as ``look.Device`` has them."""
    for device in sorted((*classes.glob("infiniband/*"), *classes.glob("cxi/*"))):
        # Soft-RoCE and Soft-iWARP are no cards, and have no device.
        if not (device / "device").exists():
            continue
        ports = [(content(one / "state"), one) for one in sorted(device.glob("ports/*"))]
        active = [one for one in ports if "ACTIVE" in one[0]]
        state, port = (active or ports or [("", device)])[0]
        rate = content(port / "rate").split()
        yield {
            "name": device.name,
            "link_layer": content(port / "link_layer"),
            "mbit_s": int(float(rate[0]) * 1000) if rate else None,
            "active": bool(active) or not state,
            "numa_node": content(device / "device" / "numa_node"),
            "interfaces": [one.name for one in sorted(device.glob("device/net/*"))],
        }


def node(root: str) -> dict[str, Any]:
    """Return what this node has; ``root``: the folder of the package that runs jobs."""
    sys.path.insert(0, root)
    try:
        # As a job begins.
        importlib.import_module("netproof.jobs.acceptance")
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    else:
        fault = ""
    return {
        "name": os.environ.get("SLURMD_NODENAME") or os.uname().nodename,
        "python_fault": fault,
        "interfaces": [*interfaces()],
        "devices": [*devices()],
    }


def step(pmi: str, *words: str) -> list[str]:
    """Return the command of a job step."""
    return ["srun", f"--mpi={pmi}", "--overlap", "--input=none", *words]


def networks(first: str, second: str) -> dict[str, dict[int, float]]:
    """Return the Mbit/s by NPtcp over each interface of the first node, at each size."""
    rates = {}
    text = content(f"../node.{first}.txt").splitlines()
    there = [json.loads(line.partition(" ")[2]) for line in text if line.startswith(HEADER)]
    for one in there[0]["interfaces"] if there else ():
        if not one["address"]:
            continue
        file = Path(f"network.{one['name']}.np")
        receiver = ["timeout", "25", *step("none", "-N1", "-n1", "-w", first), *TCP]
        sender = ["timeout", "20", *step("none", "-N1", "-n1", "-w", second), *TCP]
        with subprocess.Popen(receiver, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            time.sleep(2)
            run(*sender, "-h", one["address"], "-o", str(file))
        if measured := rates_of(content(file)):
            rates[one["name"]] = measured
    return rates


def rates_of(text: str) -> dict[int, float]:
    """Return the Mbit/s at each size in what ``NPtcp -o`` wrote: bytes, its Mbps, seconds."""
    found = (line.split() for line in text.splitlines())
    return {int(one[0]): 8e-6 * int(one[0]) / float(one[2]) for one in found if len(one) == 3}


def library(program: str) -> tuple[str, str]:
    """Return path and version of the MPI library that a program loads."""
    path = found(r"(/[^ )\n]*/libmpi(?:ch)?\.so[^ ):\n]*)", run("ldd", program)[1])
    openmpi = re.search(r"libmpi\.so\.[234]", path)
    asking = ("ompi_info", "--version") if openmpi else ("mpichversion",)
    for command in (asking, ("mpirun", "--version")):
        there, said = run(*command, limit_s=20)
        lines = said.splitlines()
        first = lines[:1] if command[0] == "ompi_info" else []
        named = first or [one for one in lines if re.search("(?i)version|mpi", one)]
        if there and named:
            return path, named[0].strip()
    return path, ""


def sent() -> dict[str, int]:
    """Return the bytes that each interface has sent."""
    files = Path("/sys/class/net").glob("*/statistics/tx_bytes")
    return {one.parts[-3]: int(text) for one in files if (text := content(one))}


def environment(nodes: str, *pmis: str) -> dict[str, Any]:
    """Return what is in this environment, as ``look.LookedEnvironment`` has it.

    Of a program that failed by each plugin the words by the first are kept: the first is the
    likeliest.
    """
    paths = {name: shutil.which(name) for name in ("NPtcp", *ARGUMENTS)}
    programs = {name: path for name, path in paths.items() if path}
    several = nodes.split(",")
    if "NPtcp" in programs and len(several) > 1 and not NETWORKS.exists():
        NETWORKS.write_text(json.dumps(networks(*several)))
    where = ["-N2", "--ntasks-per-node=1"] if len(several) > 1 else ["-N1", "--ntasks-per-node=2"]
    known: dict[str, float] = {}
    carried: dict[str, dict[str, int]] = {}
    words: dict[str, list[str]] = {}
    pmi, loaded = "", ("", "")
    for program in filter(programs.get, ARGUMENTS):
        loaded = loaded if pmi else library(programs[program])
        for trying in [pmi] if pmi else pmis:
            asked = step(trying, "-n2", *where, "-w", nodes, "--kill-on-bad-exit=1")
            command = ["timeout", "-k", "5", "60", *asked, program, *ARGUMENTS[program].split()]
            before = sent()
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
            pattern, unit = RATES[program]
            figures = re.findall(pattern, done.stdout + done.stderr)
            if done.returncode == 0 and figures:
                known[program], pmi = unit * float(figures[-1]), trying
                now = sent()
                carried[program] = {one: now[one] - before[one] for one in now.keys() & before}
                words.pop(program, None)
                break
            late = "it did not end in 60 s: " if done.returncode == 124 else ""
            said = [*done.stdout.splitlines(), *done.stderr.splitlines()]
            lines = [line.strip() for line in said if line.strip()]
            default = f"status {done.returncode}"
            words.setdefault(program, [f"--mpi={trying}: {late}", default, *lines])
    return {
        "programs": programs,
        "library": loaded,
        "pmi": pmi,
        "mbit_s": known,
        "carried": carried,
        "said": words,
    }


HEADER = "netproof-look-1 "

if __name__ == "__main__":
    os.environ |= {"LC_ALL": "C", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    kind, *arguments = sys.argv[1:]
    print(HEADER + json.dumps((node if kind == "node" else environment)(*arguments)))
