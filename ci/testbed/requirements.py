"""The testbed's needs: root, programs, plugins, and no other testbed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ci.testbed import network, processes
from ci.testbed.daemons import system_tables
from ci.testbed.errors import CannotRunError
from ci.testbed.state import StateFolder

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "sh": "dash",
    "hostname": "hostname",
    "mount": "mount",
    "ethtool": "ethtool",
    "iptables": "iptables",
    "taskset": "util-linux",
    "munged": "munge",
    "mariadbd": "mariadb-server-core",
    "slurmdbd": "slurmdbd",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "sinfo": "slurm-client",
    "sacctmgr": "slurm-client",
    "scontrol": "slurm-client",
}
"""Programs of the testbed, and their Debian packages."""
PLUGINS = {
    "accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
    "mpi_pmix.so": "slurm-wlm-basic-plugins",
    "mpi_pmi2.so": "slurm-wlm-basic-plugins",
}
PLUGIN_FOLDERS = ("/usr/lib/*/slurm*", "/usr/lib64/slurm", "/usr/lib/slurm*")


def require_root() -> None:
    """Raise CannotRunError without root, and inside a node of a testbed."""
    if os.geteuid() != 0:
        raise CannotRunError("namespaces and links take root: run it as root, or by sudo")
    if os.stat("/proc/self/ns/net").st_ino in network.inodes():
        raise CannotRunError("this is a node of a testbed: run it on the machine itself")


def require_priority() -> None:
    """Raise CannotRunError if a process cannot get a higher priority."""
    try:
        subprocess.run(["sh", "-c", ":"], preexec_fn=processes.go_first, check=True)
    except subprocess.SubprocessError as error:
        raise CannotRunError(
            "a process may not be given a higher priority here, which keeps links at their rate:"
            " allow this container CAP_SYS_NICE"
        ) from error


def require_programs(needed: dict[str, str]) -> None:
    """Raise CannotRunError with missing programs and their packages."""
    missing = {program: package for program, package in needed.items() if not shutil.which(program)}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise CannotRunError(
            f"not in PATH: {', '.join(missing)}; install with 'apt-get install {packages}'"
        )


def require_files() -> None:
    """Raise CannotRunError with missing plugins of Slurm and files of MariaDB."""
    missing = {}
    for plugin, package in PLUGINS.items():
        if not any(True for f in PLUGIN_FOLDERS for _ in Path("/").glob(f"{f[1:]}/{plugin}")):
            missing[f"Slurm's plugin {plugin}"] = package
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise CannotRunError(
            f"missing: {', '.join(missing)}; install with 'apt-get install {packages}'"
        )
    system_tables()


def other_testbeds(folder: StateFolder) -> list[str]:
    """Return the state folders of other live testbeds on this machine."""
    alive = {p.state for p in processes.running() if p.state and p.state != str(folder.path)}
    return sorted(alive)


def refuse_another(folder: StateFolder) -> None:
    """Raise CannotRunError if another testbed than that of ``folder`` is up."""
    others = other_testbeds(folder)
    if others:
        raise CannotRunError(
            f"a machine has room for one testbed, and the one in {others[0]} is up: end it with"
            f" 'testbed down --state {others[0]}'"
        )
