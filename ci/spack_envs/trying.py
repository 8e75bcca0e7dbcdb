"""Build in a Slurm job, and try built environments: their fabrics and programs."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from pathlib import Path

from ci.spack_envs import build, fabrics, program, smoke
from netproof.errors import NetproofError
from netproof.site import spack
from netproof.site.spack import Combination


def in_a_job(options: argparse.Namespace) -> int:
    """Run the same command as a Slurm job, wait, show its output; return its exit status.

    Raises NetproofError without sbatch, or without output.
    """
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        raise NetproofError("there is no sbatch on PATH: --slurm needs Slurm")
    log = spack.builds(options.folder) / "slurm-build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    script = Path(__file__).resolve().parents[1] / "spack-envs"
    command = [str(script), "build" if options.install else "concretize", *options.names]
    for flag in ("any_release", "build_slurm", "locked"):
        if getattr(options, flag):
            command.append(f"--{flag.replace('_', '-')}")
    command += ["--jobs", str(options.jobs)]
    if options.site:
        command += ["--site", options.site]
    if options.locks:
        command += ["--locks", str(options.locks.resolve())]
    ended = subprocess.run(
        [
            sbatch,
            "--wait",
            "--job-name=spack-envs",
            "--nodes=1",
            f"--cpus-per-task={options.jobs}",
            f"--output={log}",
            *shlex.split(options.slurm),
            f"--wrap={shlex.join(command)}",
        ],
        check=False,
    ).returncode
    if not log.exists():
        raise NetproofError(f"the job left no {log}; sbatch ended with {ended}")
    print(log.read_text(encoding="utf-8"), end="")
    return ended


def tried_faults(combination: Combination, site: str, options: argparse.Namespace) -> list[str]:
    """Check the fabrics of a built environment and run its programs; return the faults."""
    folder = options.folder
    for fabric, reason in spack.mpi(combination, site, folder).absent.items():
        print(f"{combination.name}: without {fabric}: {reason}")
    faults = fabrics.lock_faults(combination, site, folder)
    faults += fabrics.library_faults(combination, site, folder)
    if not faults:
        print(f"{combination.name}: the fabrics that are required are there")
    faults += _smoke(combination, folder)
    tried = smoke.faults(combination, site, options.slurm, folder)
    if not tried:
        print(f"{combination.name}: {smoke.programs()} ran with 2 ranks")
    return faults + tried


def _smoke(combination: Combination, folder: Path) -> list[str]:
    """Run the packages' own smoke tests; return the faults."""
    found = program.find()
    own = spack.build_folder(combination, folder)
    log = own / spack.RECORDS / "smoke.log"
    log.write_text("", encoding="utf-8")
    if found.run(log, "-e", str(own), "test", "run", "--fail-first", "netpipe"):
        return [f"{combination.name}: {build.first_error(log)} (log: {log})"]
    print(f"{combination.name}: smoke tests passed")
    return []
