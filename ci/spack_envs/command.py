"""The verbs of ci/spack-envs; exit status 0: success, 1: a failure, 2: not possible."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from rich import box
from rich.table import Table as Columns
from rich.text import Text
from ruamel.yaml import YAML

from ci.options import verbs
from ci.spack_envs import build, consistency, program, release, smoke
from netproof.errors import NetproofError
from netproof.present.terminal import console
from netproof.site import spack
from netproof.site.spack import Combination

ENVIRONMENT_TEXT = """\
spack:
  include:
  # The site's externals, which come before all else; ci/spack-envs puts them where it builds.
  - path: ../../site/chosen.yaml
    optional: true
  - ../../mpi/{mpi}.yaml
  - ../../compiler/{compiler}.yaml
  - ../../common.yaml
  # The MPI library is a root too, since the view shows roots only and has to have its mpiexec.
  specs: [$mpi, $apps]
  view:
    default:
      root: view
      link: roots
"""
NO_SITE = "none"


def main(arguments: list[str]) -> int:
    """Run one verb."""
    defaults = {"--jobs": os.cpu_count() or 1}
    parser = verbs(Path(__file__).with_name("verbs.yaml"), defaults)
    options = parser.parse_args(arguments)
    options.folder, options.given = spack.FOLDER, arguments
    signal.signal(signal.SIGTERM, _interrupt)
    # In the background of a shell, this process and its children would ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return VERBS[options.verb](options)
    except NetproofError as error:
        print(f"spack-envs: {error}", file=sys.stderr)
        return 2
    except PermissionError as error:
        place = spack.builds(options.folder)
        print(
            f"spack-envs: {error.filename}: {error.strerror}: only {_owner(place)}, to whom {place}"
            " belongs, can build, check and clean what is there",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("spack-envs: interrupted; run it again to go on", file=sys.stderr)
        return 130


def show(options: argparse.Namespace) -> int:
    """Print the table of combinations with the state of each."""
    table = spack.table(options.folder)
    site = build.chosen_site(options.folder)
    columns = Columns(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("environment", "state", "built", "site", "MPI", "compiler", "hash"):
        columns.add_column(heading)
    remarks = []
    for combination in table.build:
        found = spack.state(combination, options.folder, site)
        if found.reason and found.word != "not built":
            remarks.append(f"{combination.name}: {found.reason}")
        cells = ["", "", "", "", ""]
        if found.record:
            library = spack.mpi(combination, found.record.site, options.folder).package
            built = found.record.packages[library]
            compilers = {entry["compiler"] for entry in found.record.packages.values()} - {""}
            cells = [
                found.record.built,
                found.record.site or NO_SITE,
                built["spec"] + (" (external)" if "external" in built else ""),
                ", ".join(sorted(compilers)),
                built["hash"][:7],
            ]
        columns.add_row(combination.name, found.word, *cells)
    out = console()
    out.print(columns)
    remarks += [f"{pair.name} is excluded: {why}" for pair, why in table.excluded.items()]
    for remark in remarks:
        out.print(Text(remark), soft_wrap=True)
    return 0


def build_all(options: argparse.Namespace) -> int:
    """Build environments, several at a time, and print each outcome."""
    table = spack.table(options.folder)
    chosen = [table.named(name) for name in options.names] or list(table.build)
    _insist_on_consistency(options.folder)
    if options.slurm is not None:
        return _in_a_job(options)
    found = program.find()
    if not options.any_release:
        release.insist(found.release, options.folder)
    if chosen_site := options.site or os.environ.get("NETPROOF_SPACK_SITE"):
        _choose(chosen_site, options.folder)
    site = build.chosen_site(options.folder) or NO_SITE
    at_a_time = min(len(chosen), options.jobs)
    wanted = build.Wanted(
        max(1, options.jobs // at_a_time),
        options.locks or (options.folder / "locks" / site if options.locked else None),
        options.locked,
        options.build_slurm,
        options.verb == "build",
    )
    print(
        f"spack-envs: {len(chosen)} environments by Spack {found.version}"
        f" and its packages {found.release['packages'].name}, site {site}",
        flush=True,
    )

    def one(combination: Combination) -> build.Outcome:
        outcome = build.build(combination, found, wanted, options.folder)
        print(f"{outcome.name}: {outcome.what}, {outcome.seconds:.0f} s", flush=True)
        return outcome

    if at_a_time > 1:
        _index_packages(found, options.folder)
    with ThreadPoolExecutor(at_a_time) as pool:
        try:
            outcomes = list(pool.map(one, chosen))
        except KeyboardInterrupt:
            found.end()
            pool.shutdown(cancel_futures=True)
            raise
    print()
    for outcome in outcomes:
        print(f"{outcome.name}: {outcome.what}; log: {outcome.log}")
        if outcome.error:
            print(f"    {outcome.error}")
    return 1 if any(outcome.error for outcome in outcomes) else 0


def where(options: argparse.Namespace) -> int:
    """Print the folder that an environment is built in, for `spack -e`."""
    combination = spack.table(options.folder).named(options.name)
    own = spack.build_folder(combination, options.folder)
    if not (own / "spack.yaml").exists():
        raise NetproofError(
            f"nothing is there of {options.name} yet: run ci/spack-envs concretize {options.name}"
        )
    print(own)
    return 0


def bootstrap(options: argparse.Namespace) -> int:
    """Get the pair of releases, and print the shell's commands for it."""
    pair = release.pair(options.folder)
    for line in release.bootstrap(pair, options.place):
        print(line)
    return 0


def upgrade(options: argparse.Namespace) -> int:
    """Show the changes by another pair of releases, and adopt it on request."""
    _insist_on_consistency(options.folder)
    old = release.pair(options.folder)
    tags = {"spack": options.spack, "packages": options.packages}
    new = {half: release.resolved(old[half].repository, tag) for half, tag in tags.items()}
    release.bootstrap(new, options.place)
    found = program.find(options.place / "spack" / "bin")
    if options.site:
        _choose(options.site, options.folder)
    site = build.chosen_site(options.folder)
    failed = False
    for combination in spack.table(options.folder).build:
        print(f"{combination.name}:")
        for line in build.changes(combination, found, site, options.place, options.folder):
            failed = failed or line.startswith("error")
            print(f"    {line}", flush=True)
    if failed:
        print(f"{release.FILE} stays as it is: the requirements that fail come first")
        return 1
    path = options.folder / release.FILE
    if options.write:
        path.write_text(release.text(new, path.read_text("utf-8")), encoding="utf-8")
        print(f"{path} names them now; locks and what is built are stale")
    else:
        print(f"{path} stays as it is; --write takes them")
    return 0


def check(options: argparse.Namespace) -> int:
    """Compare table, folders and files with each other, then try the built environments."""
    faults = list(consistency.faults(options.folder))
    print(f"files: {len(faults)} faults")
    if not faults:
        table = spack.table(options.folder)
        for combination in [table.named(name) for name in options.names] or table.build:
            found = spack.state(combination, options.folder)
            print(f"{combination.name}: {found.word}")
            if found.word in ("stale", "failed"):
                faults.append(f"{combination.name}: {found.reason}")
            elif found.record is not None:
                faults += smoke.tried_faults(combination, found.record.site, options)
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


def add(options: argparse.Namespace) -> int:
    """Add a combination to the table, and its environment."""
    combination = Combination(options.mpi, options.compiler)
    table = spack.table(options.folder)
    if combination in table.excluded:
        raise NetproofError(f"{combination.name} is excluded: {table.excluded[combination]}")
    if combination in table.build:
        raise NetproofError(f"{combination.name} is in the table already")
    for kind, name in (("mpi", options.mpi), ("compiler", options.compiler)):
        path = options.folder / kind / f"{name}.yaml"
        if not path.exists():
            names = ", ".join(sorted(other.stem for other in path.parent.glob("*.yaml")))
            raise NetproofError(
                f"there is no {path}; there are {names}. docs/spack.md has its form"
            )
    own = spack.environment_folder(combination, options.folder)
    own.mkdir(exist_ok=True)
    (own / "spack.yaml").write_text(
        ENVIRONMENT_TEXT.format(mpi=options.mpi, compiler=options.compiler), encoding="utf-8"
    )
    yaml = YAML()
    yaml.width = 100
    path = options.folder / "matrix.yaml"
    content = yaml.load(path.read_text(encoding="utf-8"))
    if options.mpi in content["build"]:
        content["build"][options.mpi].append(options.compiler)
    else:
        content["build"].insert(len(content["build"]), options.mpi, [options.compiler])
    with path.open("w", encoding="utf-8") as written:
        yaml.dump(content, written)
    print(f"{combination.name} is in {path}; ci/spack-envs build {combination.name} builds it")
    return 0


def clean(options: argparse.Namespace) -> int:
    """Remove build folders."""
    table = spack.table(options.folder)
    for combination in [table.named(name) for name in options.names] or table.build:
        done = build.clean(combination, options.folder)
        print(f"{combination.name}: {'view, lock and records removed' if done else 'was clean'}")
    print("what Spack installed stays in its store; `spack gc` removes what nothing needs")
    return 0


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": show,
    "build": build_all,
    "concretize": build_all,
    "bootstrap": bootstrap,
    "upgrade": upgrade,
    "where": where,
    "check": check,
    "add": add,
    "clean": clean,
}


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _in_a_job(options: argparse.Namespace) -> int:
    """Run the same command as a Slurm job, wait, show its output; return its exit status.

    Raises NetproofError without sbatch, or without output.
    """
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        raise NetproofError("there is no sbatch on PATH: --slurm needs Slurm")
    log = spack.builds(options.folder) / "slurm-build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    own = [str(Path(__file__).resolve().parents[1] / "spack-envs"), *options.given]
    own += ["--in-job", f"--jobs={options.jobs}"]
    words = [sbatch, "--wait", "--job-name=spack-envs", "--nodes=1"]
    words += [f"--cpus-per-task={options.jobs}", f"--output={log}", *shlex.split(options.slurm)]
    ended = subprocess.run([*words, f"--wrap={shlex.join(own)}"], check=False).returncode
    if not log.exists():
        raise NetproofError(f"the job left no {log}; sbatch ended with {ended}")
    print(log.read_text(encoding="utf-8"), end="")
    return ended


def _owner(place: Path) -> str:
    """Return the owner of a folder, or of its closest existing parent."""
    while not place.exists():
        place = place.parent
    try:
        return place.owner()
    except KeyError:
        return f"user {place.stat().st_uid}"


def _insist_on_consistency(folder: Path) -> None:
    found = list(consistency.faults(folder))
    if found:
        raise NetproofError("; ".join(found))


def _choose(site: str, folder: Path) -> None:
    """Record the site whose externals the environments use."""
    path = spack.builds(folder) / "site"
    if site == NO_SITE:
        path.unlink(missing_ok=True)
        return
    if not (folder / "site" / site / "packages.yaml").exists():
        names = sorted(other.parent.name for other in folder.glob("site/*/packages.yaml"))
        raise NetproofError(
            f"there is no {folder / 'site' / site / 'packages.yaml'}; sites: {', '.join(names)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{site}\n", encoding="utf-8")


def _index_packages(found: program.Spack, folder: Path) -> None:
    """Have Spack index its packages once if needed.

    Of several processes together, one makes the index, and the others give up after two minutes.
    """
    log = spack.builds(folder) / "index.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    if found.run(log, "providers", "mpi"):
        raise NetproofError(f"{build.first_error(log)} (log: {log})")
