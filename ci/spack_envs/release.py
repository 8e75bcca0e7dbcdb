"""The pair of releases, Spack and its packages, for spack-envs/."""

from __future__ import annotations

import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from netproof.errors import NetproofError
from netproof.site.spack import load

FILE = "release.yaml"
HALVES = ("spack", "packages")


@dataclass(frozen=True)
class Release:
    """One half of the pair: its repository, its tag and its commit (40 hexadecimal digits)."""

    repository: str
    tag: str
    commit: str

    def __str__(self) -> str:
        return f"{self.tag} ({self.commit[:12]})"


def pair(folder: Path) -> dict[str, Release]:
    """Read "spack" and "packages" of ``folder``/release.yaml. Raises SpackFileError."""
    content = load(folder / FILE, "release")
    return {half: Release(**content[half]) for half in HALVES}


@dataclass(frozen=True)
class Found:
    """A clone's commit, and a name to show, with its tag if it has one.

    The commit ends with "-changed" if tracked files differ, and is "unknown" without git, for an
    unpacked archive for instance.
    """

    commit: str
    name: str


def at(clone: Path) -> Found:
    """Return a clone's commit and its name."""
    found = _git(clone, "rev-parse", "--show-toplevel", "HEAD")
    if found.returncode:
        return Found("unknown", "of no known commit")
    top, head = found.stdout.split()
    tagged = _git(Path(top), "describe", "--tags", "--exact-match", "HEAD")
    name = f"{tagged.stdout.strip() or 'untagged'} ({head[:12]})"
    if _git(Path(top), "diff", "--quiet", "HEAD").returncode:
        return Found(f"{head}-changed", f"{name} with changed files")
    return Found(head, name)


def insist(found: dict[str, Found], folder: Path) -> None:
    """Raise NetproofError unless ``found``, by half, is the pair of release.yaml.

    It names both, and the command that gets the right ones.
    """
    named = {"spack": "Spack", "packages": "Spack's package repository"}
    wrong = [
        f"{named[half]} is {found[half].name}, and {FILE} names {release}"
        for half, release in pair(folder).items()
        if found[half].commit != release.commit
    ]
    if wrong:
        raise NetproofError(
            f"{'; '.join(wrong)}. 'ci/spack-envs bootstrap DIR' gets the named ones;"
            " with --any-release it goes on with what is here"
        )


def bootstrap(releases: dict[str, Release], place: Path) -> list[str]:
    """Clone the pair into ``place``/spack and ``place``/packages, and connect them.

    An existing clone is updated to its release. Return the shell's commands for them. Raises
    NetproofError if ``place`` cannot be made, or a release is not available or has another commit
    than release.yaml.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NetproofError(
            f"{place} is no folder that can be made: {error.strerror}; name another as DIR"
        ) from error
    for half, release in releases.items():
        clone = place / half
        if not (clone / ".git").exists():
            _insist_git(place, "init", "--quiet", half)
        if at(clone).commit != release.commit:
            ref = f"refs/tags/{release.tag}"
            fetch = ["fetch", "--quiet", "--depth=1", release.repository, f"+{ref}:{ref}"]
            _insist_git(clone, *fetch)
            got = _insist_git(clone, "rev-parse", f"{ref}^{{commit}}")
            if got != release.commit:
                raise NetproofError(
                    f"{release.repository}: {release.tag} is commit {got}, and not"
                    f" {release.commit}, which {FILE} names"
                )
            _insist_git(clone, "checkout", "--quiet", "--detach", got)
        found = at(clone)
        if found.commit != release.commit:
            raise NetproofError(f"{clone} is {found.name}, and not {release}")
    packages = place / "packages" / "repos" / "spack_repo" / "builtin"
    # Not etc/spack itself: that would precede the repositories that a user adds.
    site = place / "spack" / "etc" / "spack" / "site"
    site.mkdir(parents=True, exist_ok=True)
    (site / "repos.yaml").write_text(f"repos:\n  builtin: {packages.resolve()}\n", encoding="utf-8")
    return [f". {place.resolve()}/spack/share/spack/setup-env.sh"]


def resolved(repository: str, tag: str) -> Release:
    """Return the release that ``tag`` now is in a repository. Raises NetproofError."""
    names = [f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}"]
    listed = _insist_git(Path.cwd(), "ls-remote", repository, *names)
    by_name = {name: digest for digest, name in (line.split() for line in listed.splitlines())}
    # An annotated tag is an object of its own that points to the commit.
    found = by_name.get(names[1]) or by_name.get(names[0])
    if found is None:
        raise NetproofError(f"{repository} has no tag {tag}")
    return Release(repository, tag, found)


def text(releases: dict[str, Release], old: str) -> str:
    """Return release.yaml's text for other releases, with the comments of the ``old`` one."""
    comments = [line for line in old.splitlines() if line.startswith("#")]
    lines = [*comments]
    for half, release in releases.items():
        lines += [f"{half}:", *(f"  {key}: {value}" for key, value in asdict(release).items())]
    return "\n".join(lines) + "\n"


def _git(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        # A shared Spack may belong to another user.
        ["git", "-c", "safe.directory=*", "-C", where, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _insist_git(where: Path, *arguments: str) -> str:
    ran = _git(where, *arguments)
    if ran.returncode:
        said = ran.stderr.strip().splitlines() or ["nothing"]
        raise NetproofError(f"git {' '.join(arguments)}: {said[-1]}")
    return ran.stdout.strip()
