"""Runs what will be run: each program over MPI of an environment, on 2 ranks, by its library."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ci.spack_envs import fabrics, lock
from netproof.benchmarks import netpipe_reading, registry
from netproof.benchmarks.interface import MpiBenchmark
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import plan
from netproof.site import spack
from netproof.site.spack import Combination, Mpi

LARGEST = 64
"""Bytes of the largest message: whether it runs is asked, not how fast."""
SECONDS = 300
"""How long a program may take, a queue included."""


def faults(combination: Combination, site: str, slurm: str | None, folder: Path) -> list[str]:
    """What goes wrong where the programs of an environment run, in a sentence each.

    ``slurm``: options of srun to run them by; None for the MPI library's own mpiexec, on this
    machine.
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
    """What is run, in words."""
    names = ["NPmpi", *(name for one in registry.MPI_BENCHMARKS for name in one.programs())]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _prefix(view: Path, mpi: Mpi) -> Path:
    """Where the MPI library is installed, by Spack or by whom the site's file says."""
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
    """What a job's environment has, and what Open MPI wants of root and of a small machine."""
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
    # By itself it repeats for a time, which ranks that share a core with others draw out.
    few = ["-u", str(LARGEST), "-n", "10"]
    _run([*start, str(program), "-o", str(out), *few], place, variables)
    if not out.exists():
        raise NetproofError(f"{program} left no {out}")
    read = netpipe_reading.read_file(out.read_text(encoding="utf-8"), str(out), bidirectional=False)
    sizes = tuple(point.size for point in read.points)
    if sizes != netpipe_reading.sizes(1, LARGEST, 3):
        raise NetproofError(f"{out} has other sizes than NetPIPE measures: {sizes}")


def _function(
    benchmark: MpiBenchmark,
    name: str,
    prefix: Path,
    start: list[str],
    place: Path,
    variables: dict[str, str],
) -> None:
    """The first function that the program ``name`` has, as a job would start it."""
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
    """The loader has to find the MPI library that was built, or that the site names."""
    libraries = {
        name: path
        for name, path in fabrics.linked(program).items()
        if name.startswith(("libmpi.so", "libmpich.so"))
    }
    # A prefix may be one of links, as an external's of Debian is.
    own = {path.resolve() for path in prefix.glob("lib*/libmpi*.so*")}
    if not libraries:
        raise NetproofError(f"{program} is linked with no libmpi")
    for name, path in libraries.items():
        if path.resolve() not in own:
            raise NetproofError(f"{program} takes {name} from {path}, not from {prefix}")


def _run(command: list[str], place: Path, variables: dict[str, str]) -> str:
    """What a program prints. Raises NetproofError where it fails, with its last line."""
    with (place / "smoke.log").open("a", encoding="utf-8") as log:
        print(f"$ {shlex.join(command)}", file=log, flush=True)
        try:
            process = subprocess.Popen(
                command,
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise NetproofError(f"{shlex.join(command)}: {error.strerror}") from error
        try:
            out, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise NetproofError(f"{shlex.join(command)} took over {SECONDS} s") from None
        finally:
            if process.poll() is None:
                _end(process)
        log.write(out + errors)
    if process.returncode:
        said = (errors or out).strip().splitlines() or ["nothing"]
        raise NetproofError(
            f"{shlex.join(command)} ended with {process.returncode}: {said[-1]}"
            f" (log: {place / 'smoke.log'})"
        )
    return out


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a launcher with its ranks: asked first, so that srun and mpiexec end those elsewhere."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
