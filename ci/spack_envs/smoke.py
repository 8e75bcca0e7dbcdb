"""Try a built environment: its fabrics, its packages' own tests, and its programs on 2 ranks."""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ci.spack_envs import build, fabrics, lock, program
from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.interface import MpiBenchmark
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import plan
from netproof.site import spack
from netproof.site.spack import Combination, Mpi

LARGEST = 64
"""Bytes of the largest message, since speed does not matter here."""
SECONDS = 300
"""Time limit of a program, with the queue."""
ENDING_S = 10
"""Seconds after which a program that does not end is killed."""
TIMED_OUT = (124, 137)
"""Exit statuses of timeout(1) for a program that took too long, and for one that it killed."""


def tried_faults(combination: Combination, site: str, options: argparse.Namespace) -> list[str]:
    """Check the fabrics of a built environment and run its programs; return the faults."""
    folder = options.folder
    for fabric, reason in spack.mpi(combination, site, folder).absent.items():
        print(f"{combination.name}: without {fabric}: {reason}")
    faults = fabrics.lock_faults(combination, site, folder)
    faults += fabrics.library_faults(combination, site, folder)
    if not faults:
        print(f"{combination.name}: the fabrics that are required are there")
    faults += _own_tests(combination, folder)
    tried = faults_of_programs(combination, site, options.slurm, folder)
    if not tried:
        print(f"{combination.name}: {programs()} ran with 2 ranks")
    return faults + tried


def _own_tests(combination: Combination, folder: Path) -> list[str]:
    """Run the packages' own smoke tests; return the faults."""
    found = program.find()
    own = spack.build_folder(combination, folder)
    log = own / spack.RECORDS / "smoke.log"
    log.write_text("", encoding="utf-8")
    if found.run(log, "-e", str(own), "test", "run", "--fail-first", "netpipe"):
        return [f"{combination.name}: {build.first_error(log)} (log: {log})"]
    print(f"{combination.name}: smoke tests passed")
    return []


def faults_of_programs(
    combination: Combination, site: str, slurm: str | None, folder: Path
) -> list[str]:
    """Run an environment's programs; return a sentence for each failure.

    ``slurm``: options of srun; None for the MPI library's own mpiexec, on this machine.
    """
    mpi = spack.mpi(combination, site, folder)
    view = spack.view(combination, folder)
    place = view.parent / spack.RECORDS / "smoke"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        prefix = _prefix(view, mpi)
        start = _launcher(prefix, mpi, slurm)
    except NetproofError as error:
        return [f"{combination.name}: {error}"]
    runs: list[Callable[..., None]] = [_netpipe]
    runs += [
        functools.partial(_function, benchmark, program)
        for benchmark in registry.MPI_BENCHMARKS
        for program in benchmark.programs()
    ]
    variables = _environment(spack.program_folders(combination, folder), mpi)
    found = []
    for run in runs:
        try:
            run(prefix, [*start], place, variables)
        except NetproofError as error:
            found.append(f"{combination.name}: {error}")
    return found


def programs() -> str:
    """Return the programs' names, as words of a sentence."""
    names = ["NPmpi", *(name for one in registry.MPI_BENCHMARKS for name in one.programs())]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _prefix(view: Path, mpi: Mpi) -> Path:
    """Return the MPI library's prefix, by Spack or by the site's file."""
    root = lock.roots(view.parent / "spack.lock")[mpi.package]
    if root.get("external"):
        return Path(root["external"]).resolve()
    compiler = view / "bin" / "mpicc"
    if not compiler.exists():
        raise NetproofError(f"there is no {compiler}: the view lacks the MPI library")
    return compiler.resolve().parents[1]


def _launcher(prefix: Path, mpi: Mpi, slurm: str | None) -> list[str]:
    if slurm is not None:
        srun = shutil.which("srun")
        if srun is None:
            raise NetproofError("there is no srun on PATH: --slurm needs Slurm")
        return [srun, f"--mpi={mpi.pmi}", "--ntasks=2", *shlex.split(slurm)]
    mpiexec = prefix / "bin" / "mpiexec"
    if not os.access(mpiexec, os.X_OK):
        raise NetproofError(
            f"{programs()} were not run: {prefix} has no mpiexec, since srun starts its"
            " ranks; give check --slurm with options of srun, --slurm --nodes=2 for instance"
        )
    return [str(mpiexec), "-n", "2"]


def _environment(programs: Sequence[Path], mpi: Mpi) -> dict[str, str]:
    """Return a job's variables, and those that Open MPI needs for root on a small machine."""
    variables = {
        **os.environ,
        **dict(mpi.env_vars),
        "PATH": os.pathsep.join([*map(str, programs), os.environ.get("PATH", "")]),
    }
    if mpi.kind == "openmpi":
        variables["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
        variables["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
        if os.geteuid() == 0:
            variables["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
            variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return variables


def _program(name: str, variables: dict[str, str]) -> Path:
    found = shutil.which(name, path=variables["PATH"])
    if found is None:
        raise NetproofError(f"there is no {name} in {variables['PATH']}")
    return Path(found)


def _netpipe(prefix: Path, start: list[str], place: Path, variables: dict[str, str]) -> None:
    program, out = _program("NPmpi", variables), place / "np.out"
    _insist_on_library(program, prefix)
    # By default it repeats for a time, too long for ranks that share a core.
    few = ["-u", str(LARGEST), "-n", "10"]
    _run([*start, str(program), "-o", str(out), *few], place, variables)
    if not out.exists():
        raise NetproofError(f"{program} left no {out}")
    read = netpipe.read_file(out.read_text(encoding="utf-8"), str(out), bidirectional=False)
    sizes = read.curve().sizes
    if sizes != netpipe.sizes(1, LARGEST, 3):
        raise NetproofError(f"{out} has other sizes than NetPIPE measures: {sizes}")


def _function(
    benchmark: MpiBenchmark,
    name: str,
    prefix: Path,
    start: list[str],
    place: Path,
    variables: dict[str, str],
) -> None:
    """Run the first function of the program ``name``, as a job would."""
    function = next(one for one in benchmark.functions if benchmark.program(one.name) == name)
    program, out = _program(name, variables), place / f"{name}.out"
    _insist_on_library(program, prefix)
    sizes = function.sizes(2, LARGEST)
    files = plan.size_files({function.name: sizes})
    for file, text in files.items():
        (place / file).write_text(text, encoding="utf-8")
    listed = next(iter(files))
    _, *arguments = benchmark.command(function, 2, sizes, listed, benchmark.few_calls)
    text = _run([*start, str(program), *arguments], place, variables)
    out.write_text(text, encoding="utf-8")
    case = Case("here", "here", "here", benchmark.name, function.name, 2, 1)
    found = benchmark.read_launch(text, out, case).sizes
    if found != sizes:
        raise NetproofError(f"{out} has the sizes {found}, not {sizes}")


def _insist_on_library(program: Path, prefix: Path) -> None:
    """Check that the loader finds the MPI library that was built or that the site names."""
    libraries = {
        name: path
        for name, path in fabrics.linked(program).items()
        if name.startswith(("libmpi.so", "libmpich.so"))
    }
    # A prefix may consist of links, like that of a Debian external.
    own = {path.resolve() for path in prefix.glob("lib*/libmpi*.so*")}
    if not libraries:
        raise NetproofError(f"{program} is linked with no libmpi")
    for name, path in libraries.items():
        if path.resolve() not in own:
            raise NetproofError(f"{program} takes {name} from {path}, not from {prefix}")


def _run(command: list[str], place: Path, variables: dict[str, str]) -> str:
    """Return a program's output. Raises NetproofError with its last line if it fails."""
    # It ends the launcher by SIGTERM first, so that that ends remote ranks.
    limited = ["timeout", f"--kill-after={ENDING_S}", str(SECONDS), *command]
    with (place / "smoke.log").open("a", encoding="utf-8") as log:
        print(f"$ {shlex.join(command)}", file=log, flush=True)
        ran = subprocess.run(
            limited,
            cwd=place,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        log.write(ran.stdout + ran.stderr)
    if ran.returncode in TIMED_OUT:
        raise NetproofError(f"{shlex.join(command)} took over {SECONDS} s")
    if ran.returncode:
        said = (ran.stderr or ran.stdout).strip().splitlines() or ["nothing"]
        raise NetproofError(
            f"{shlex.join(command)} ended with {ran.returncode}: {said[-1]}"
            f" (log: {place / 'smoke.log'})"
        )
    return ran.stdout
