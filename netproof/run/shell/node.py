"""Describe this node, or the paths to others: one line of JSON.

``node.py node INTERFACE PROGRAM...`` prints what the node is, ``node.py path INTERFACE`` which
packets come through to the nodes of ``ring.txt``, and which of them answer a TCP connection.
Missing values have their reason in ``absent``. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

TCP = """
congestion_control rmem wmem timestamps sack window_scaling moderate_rcvbuf adv_win_scale
autocorking limit_output_bytes slow_start_after_idle mtu_probing no_metrics_save ecn dsack
recovery early_retrans min_tso_segs tso_win_divisor
"""

CORE = """
rmem_max wmem_max rmem_default wmem_default netdev_max_backlog netdev_budget default_qdisc
busy_poll busy_read
"""

MITIGATIONS = re.compile(
    r"(mitigations|pti|retbleed|l1tf|mds|mmio_stale_data|srbds|gather_data_sampling"
    r"|reg_file_data_sampling)=|nosmt|nopti$|nospec|spec|tsx.*="
)
"""Words of the kernel's command line on flaws of the CPU."""

LIBRARIES = re.compile(r"(libmpi([^a-z].*)?|libmpich|libfabric|libucp|libopen-pal)\.so.*")

BUSY_PERCENT, BUSY_S = 10, 0.5
"""A program is busy if it uses this percentage of a CPU over so long."""

TICK_S = 0.01

HEADERS, SMALL_BYTES = 28, 84
"""Bytes of a packet's headers, and of ping's own packets with them."""

CONNECT_S = 3.0

UNKNOWN = "-"
"""Sign of an unknown address in ring.txt."""


NUMBERS = {
    **dict.fromkeys(("cpus", "mtu", "link_mbit_s", "path_asked_bytes", "path_passed_bytes"), int),
    **dict.fromkeys(("clock_s", "clock_ntp_offset_s"), float),
}

FACTS: dict[str, Any] = {}


def say(key: str, value: str) -> None:
    """Note a value, ``GROUP.KEY`` in a group; any white space in it becomes one space."""
    group, dot, name = key.partition(".")
    text = " ".join(value.split())
    if dot:
        FACTS.setdefault(group, {})[name] = text
    else:
        FACTS[key] = NUMBERS.get(key, str)(text)


def known(key: str, value: str, reason: str) -> None:
    """Note the value, or the reason if it is empty."""
    say(*((key, value) if value.strip() else (f"absent.{key}", reason)))


def content(path: Path | str) -> str:
    """Return a file's text, nothing if it cannot be read."""
    try:
        return Path(path).read_text(errors="replace").rstrip("\n")
    except OSError:
        return ""


def run(*words: str, limit_s: float | None = None) -> tuple[bool, str]:
    """Return whether a command succeeded, and all that it printed."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=limit_s, errors="replace", check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return False, f"{words[0]} is not installed"
    except subprocess.TimeoutExpired:
        return False, f"nothing said in {limit_s:g} s"
    return done.returncode == 0, done.stdout


def found(pattern: str, text: str) -> str:
    """Return what the pattern's group matches first; empty if nothing does."""
    match = re.search(pattern, text, re.M)
    return match[1] if match else ""


def note_carriers(node: str) -> None:
    """Append the carrier changes so far to the node's file in the job's folder, for counters.sh."""
    carriers = ""
    for line in content("/proc/net/dev").splitlines()[2:]:
        name = line.rpartition(":")[0].split()[-1]
        files = Path("/sys/class/net", name)
        figures = ("statistics/rx_bytes", "statistics/tx_bytes", "carrier_changes")
        below = [path.name.removeprefix("lower_") for path in files.glob("lower_*")]
        words = [name, *(content(files / one) or UNKNOWN for one in figures), *below]
        carriers += "\t" + " ".join(words)
    folder = os.environ.get("netproof_folder", ".")  # noqa: SIM112 (counters.sh's)
    path = Path(folder, f"carriers.{node}")
    try:
        with path.open("a") as noted:
            print(carriers, file=noted)
    except OSError:
        # Then the node's first launch counts from its own beginning.
        return


def taken() -> dict[int, tuple[float, str]]:
    """Return the CPU seconds so far and the name of each process, by its number."""
    seconds = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        # The name, in parentheses, may hold anything.
        name, _, rest = content(path).partition("(")[2].rpartition(") ")
        fields = rest.split()
        if fields:
            name = re.sub(r"[^\w.:/+-]", "_", name)
            seconds[int(path.parent.name)] = (TICK_S * (int(fields[11]) + int(fields[12])), name)
    return seconds


def is_elsewhere(process: int) -> bool:
    """Check whether a process is of this job, or of another network namespace.

    One that cannot be examined is another user's, and counts as of this namespace.
    """
    variables = content(f"/proc/{process}/environ").split("\0")
    if process == os.getpid() or f"SLURM_JOB_ID={os.environ.get('SLURM_JOB_ID', '')}" in variables:
        return True
    try:
        return not os.path.samefile(f"/proc/{process}/ns/net", "/proc/self/ns/net")
    except OSError:
        return False


def busy(before: dict[int, tuple[float, str]], began: float) -> None:
    """Note the processes of this namespace, outside this job, that used CPUs since ``began``."""
    time.sleep(max(0.0, began + BUSY_S - time.monotonic()))
    now, elapsed_s = taken(), time.monotonic() - began
    several = []
    for process, (seconds, name) in now.items():
        if process not in before:
            continue
        percent = int(100 * (seconds - before[process][0]) / elapsed_s)
        if percent >= BUSY_PERCENT and not is_elsewhere(process):
            try:
                user = pwd.getpwuid(os.stat(f"/proc/{process}").st_uid).pw_name
            except KeyError:
                user = "UNKNOWN"
            except OSError:
                user = "nobody any more"
            several.append(f"{name} (process {process} of {user}) {percent} % of a CPU")
    hidden = not os.access("/proc/1/stat", os.R_OK)
    none = "" if hidden else "none"
    known("busy", ", ".join(several) or none, "/proc hides the processes of other users")


def machine() -> None:
    """Note the kernel, the CPUs, the memory and the clock."""
    system, cpus = os.uname(), content("/proc/cpuinfo")
    say("kernel", f"{system.release} {system.version}")
    say("architecture", system.machine)
    known("cpu", found(r"^model name\s*: (.*)", cpus), "/proc/cpuinfo names no model")
    known("microcode", found(r"^microcode\s*: (.*)", cpus), "/proc/cpuinfo names none")
    say("cpus", str(os.sysconf("SC_NPROCESSORS_ONLN")))
    files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = Counter(filter(None, map(content, files)))
    each = [f"{one} on {count}" if len(governors) > 1 else one for one, count in governors.items()]
    known("governor", ", ".join(each), "the kernel sets no CPU frequencies here")
    say("memory.total KiB", found(r"^MemTotal:\s*(\d+)", content("/proc/meminfo")))
    numa = sorted(Path("/sys/devices/system/node").glob("node[0-9]*/meminfo"))
    for file in numa:
        number = file.parent.name.removeprefix("node")
        say(f"memory.NUMA {number} KiB", found(r"MemTotal:\s*(\d+)", content(file)))
    if not numa:
        say("absent.memory.NUMA", "the kernel has no NUMA nodes")
    words = [one for one in content("/proc/cmdline").split() if MITIGATIONS.match(one)]
    say("mitigations.command line", " ".join(words) or "(none)")
    for file in sorted(Path("/sys/devices/system/cpu/vulnerabilities").glob("*")):
        if value := content(file):
            say(f"mitigations.{file.name}", value)
    pages = found(r"\[(.+)\]", content("/sys/kernel/mm/transparent_hugepage/enabled"))
    known("hugepages", pages, "the kernel has no transparent hugepages")
    source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    known("clock_source", content(source), f"{source} is not there")
    ntp()


def ntp() -> None:
    """Note the clock's offset from network time, by chrony or NTP."""
    offset = ""
    if shutil.which("chronyc"):
        _, said = run("chronyc", "-n", "-c", "tracking", limit_s=2)
        fields, asked = said.strip().split(","), "chronyc tracking"
        if len(fields) >= 14 and fields[13] != "Not synchronised":
            offset = fields[4]
    elif shutil.which("ntpq"):
        _, said = run("ntpq", "-n", "-c", "rv 0 leap,offset", limit_s=2)
        asked = "ntpq"
        # In milliseconds.
        if value := found(r"leap=(?:00|01|10),.*offset=([-+]?[0-9.]+)", said):
            offset = f"{value}e-3"
    else:
        say("absent.clock_ntp_offset_s", "neither chronyc nor ntpq is installed")
        return
    known("clock_ntp_offset_s", offset, f"{asked}: {said or 'nothing said'}")


def network(interface: str) -> None:
    """Note the interface, its link, and its card."""
    say("interface", interface)
    _, link = run("ip", "-o", "link", "show", "dev", interface)
    known("mtu", found(r" mtu (\d+)", link), f"ip link: {link}")
    flags = found("<([^>]*)>", link).split(",")
    state = "up" if "LOWER_UP" in flags else "no carrier" if "UP" in flags else "down"
    known("state", state if flags != [""] else "", f"ip link: {link}")
    _, said = run("ip", "-o", "-4", "addr", "show", "dev", interface)
    known("address", found(r" inet ([0-9.]+)", said), f"{interface} has no IPv4 address")
    if not shutil.which("ethtool"):
        for key in (
            *("link_mbit_s", "duplex", "autonegotiation", "driver", "driver_version", "firmware"),
            *("bus", "nic", "pci", "offloads", "coalescing", "rings"),
        ):
            say(f"absent.{key}", "ethtool is not installed")
        return

    def field(name: str) -> str:
        return found(rf"^\s*{name}:[ \t]*(.*)", described)

    _, described = run("ethtool", interface)
    speed, duplex = field("Speed"), field("Duplex")
    known("link_mbit_s", found(r"^(\d+)Mb/s", speed), f"ethtool: {speed or described}")
    if duplex.startswith("Unknown"):
        say("absent.duplex", f"ethtool: {duplex}")
    else:
        known("duplex", duplex, "ethtool gives none")
    known("autonegotiation", field("Auto-negotiation"), "ethtool gives none")
    _, described = run("ethtool", "-i", interface)
    bus = field("bus-info")
    known("driver", field("driver"), f"ethtool -i: {described}")
    known("driver_version", field("version"), "ethtool -i gives none")
    known("firmware", field("firmware-version"), "ethtool -i gives none")
    known("bus", bus, "ethtool -i gives none")
    card(interface, bus)
    table("offloads", r"\s*([^:\s]+): (.+)", "ethtool", "-k", interface)
    table("coalescing", r"([^:]+):[ \t]*(.+)", "ethtool", "-c", interface)
    table("rings", r"([^:]+):[ \t]+(\S.*)", "ethtool", "-g", interface)


def card(interface: str, bus: str) -> None:
    """Note the PCI card at an address, and its link."""
    # Found by the bus, since /sys/class/net may be another network namespace's.
    device = Path("/sys/bus/pci/devices", bus or "none")
    if not device.exists():
        say("absent.nic", f"{interface} is no PCI device")
        say("absent.pci", f"{interface} is no PCI device")
        return
    named, said = run("lspci", "-s", bus)
    name = said.partition(" ")[2] if named else ""
    say("nic", f"{name} [{content(device / 'vendor')}:{content(device / 'device')}]")
    for key, file in (
        *(("speed", "current_link_speed"), ("maximum speed", "max_link_speed")),
        *(("width", "current_link_width"), ("maximum width", "max_link_width")),
    ):
        value = content(device / file)
        # Virtual functions have no link of their own.
        value = "" if value == "0" or value.startswith("Unknown") else value
        known(f"pci.{key}", value, f"{device / file} does not say")


def table(key: str, pattern: str, *words: str) -> None:
    """Note each "name: value" line of a command's output that matches.

    Those between "Pre-set maximums" and "Current hardware settings" are maximums.
    """
    ran, output = run(*words)
    if not ran:
        say(f"absent.{key}", f"{' '.join(words)}: {output or 'failed and said nothing'}")
        return
    maximum, count = "", 0
    for line in output.splitlines():
        if line.startswith(("Pre-set maximums:", "Current hardware settings:")):
            maximum = " maximum" if line.startswith("Pre-set") else ""
        elif match := re.match(pattern, line):
            say(f"{key}.{match[1]}{maximum}", match[2])
            count += 1
    if not count:
        say(f"absent.{key}", f"{' '.join(words)}: prints none")


def programs(names: list[str]) -> None:
    """Note the SHA-256 and the path of each program, and of the MPI libraries that it loads."""

    def hashed(key: str, path: str, reason: str) -> bool:
        try:
            say(f"programs.{key}", f"{hashlib.sha256(Path(path).read_bytes()).hexdigest()} {path}")
        except OSError:
            say(f"absent.programs.{key}", reason)
            return False
        return True

    seen = set()
    for name in names:
        path = shutil.which(name)
        if path is None:
            say(f"absent.programs.{name}", "not on PATH")
            continue
        loaded = run("ldd", path)[1] if hashed(name, path, f"{path} cannot be read") else ""
        for line in loaded.splitlines():
            library, _, resolved, *_ = [*line.split(), "", "", ""]
            if LIBRARIES.fullmatch(library) and (library, resolved) not in seen:
                seen.add((library, resolved))
                file = os.path.realpath(resolved)
                hashed(f"{library} of {name}", file, "not found by the loader")


def describe(node: str, interface: str, names: list[str]) -> None:
    """Note what the node is."""
    clock = time.time()
    note_carriers(node)
    before, began = taken(), time.monotonic()
    say("clock_s", f"{clock:.6f}")
    say("node", node)
    machine()
    network(interface)
    sysctls = [f"net.ipv4.tcp_{one}" for one in TCP.split()]
    for name in (*sysctls, *(f"net.core.{one}" for one in CORE.split())):
        path = Path("/proc/sys", name.replace(".", "/"))
        if os.access(path, os.R_OK):
            say(f"sysctls.{name}", content(path) or "(empty)")
        else:
            why = f"{path} is not there for this kernel and network namespace"
            say(f"absent.sysctls.{name}", why)
    programs(names)
    busy(before, began)


def packets(node: str, address: str, interface: str, mtu: int) -> tuple[str, str]:
    """Return how many bytes of a packet of the MTU, or of a small one, reached a node, or why none.

    They are not to be fragmented, and one of three has to be answered.
    """
    if address == UNKNOWN:
        return "", f"{node} has no IPv4 address on {interface}"
    if not shutil.which("ping"):
        return "", "ping is not installed"
    for size in (*3 * [mtu], *3 * [SMALL_BYTES]):
        words = f"ping -n -q -M do -c 1 -W 1 -s {size - HEADERS} -I {interface} {address}"
        answered, said = run(*words.split())
        if answered:
            return str(size), ""
    return "", f"ping of {address} over {interface}: {said or 'no answer'}"


def answers(address: str) -> bool:
    """Check whether its kernel takes or refuses a connection to one of two ports.

    They are such as MPI's ranks listen on. A lost SYN is sent again after 1 s.
    """
    ports = content("/proc/sys/net/ipv4/ip_local_port_range").split() or ["32768", "60999"]
    for _ in range(2):
        port = random.randint(*map(int, ports))
        try:
            socket.create_connection((address, port), CONNECT_S).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            continue
        return True
    return False


def connections(several: dict[str, str], interface: str) -> None:
    """Note which of the nodes, with their addresses, answer."""
    answered: list[str] = []
    unanswered: list[str] = []
    reasons: list[str] = []
    for node, address in several.items():
        _, route = run("ip", "-o", "route", "get", address)
        if address == UNKNOWN:
            reasons.append(f"{node} has no IPv4 address on {interface}")
        elif (other := found(r" dev (\S+)", route)) not in ("", interface):
            reasons.append(f"the way to {address} goes over {other} and not over {interface}")
        else:
            (answered if answers(address) else unanswered).append(node)
    for key, named in (("tcp_answered", answered), ("tcp_unanswered", unanswered)):
        known(
            key, ",".join(named) or ("none" if answered or unanswered else ""), ", ".join(reasons)
        )


def paths(node: str, interface: str) -> None:
    """Note the paths to the nodes of this one's line of ring.txt: two neighbours, then others."""
    say("node", node)
    lines = (line.split("\t") for line in content("ring.txt").splitlines())
    words = next((rest for name, *rest in lines if name == node), [])
    if not words:
        return
    several = list(zip(words[::2], words[1::2], strict=True))
    ahead = [*several[2:], several[0]]
    _, link = run("ip", "-o", "link", "show", "dev", interface)
    mtu = found(r" mtu (\d+)", link)
    if not mtu:
        say("path_to", ahead[0][0])
        for key in ("path_passed_bytes", "tcp_answered", "tcp_unanswered"):
            say(f"absent.{key}", f"ip link: {link}")
        return
    # Of one that packets do not reach, or of the next node.
    for name, address in ahead:
        passed, why = packets(name, address, interface, int(mtu))
        if passed != mtu or name == several[0][0]:
            break
    say("path_to", name)
    say("path_asked_bytes", mtu)
    known("path_passed_bytes", passed, why)
    connections(dict(several), interface)


def main(kind: str, interface: str, *names: str) -> None:
    """Print what is asked, after the line's header."""
    os.environ |= {"LC_ALL": "C", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    node = os.environ["SLURMD_NODENAME"]
    if kind == "node":
        describe(node, interface, [*names])
    else:
        paths(node, interface)
    print(f"netproof-{kind} 4 {json.dumps(FACTS)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
