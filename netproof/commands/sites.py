"""The verbs on a site's files: ``site init``, ``site check`` and ``site show``."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from netproof.commands.options import Form, printed, verb
from netproof.errors import NetproofError
from netproof.present import terminal
from netproof.site import folders
from netproof.verdict import FAILED, PASSED

EXAMPLE = "example"
"""The system of the examples."""

COPY = "Copy this file to site-config/<your cluster>.py and change what it says."
"""Sentence of the example on itself, which a copy need not have."""

_SYSTEM = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@verb()
def init(
    system: str,
    folder: Path = Path("."),
) -> int:
    """Write the first files of a new site."""

    _insist_on_new(system, folder)
    _write(folder, first_files(system))
    terminal.say("next:", "bold")
    for step in (
        f"put your cluster into {folder / 'site-config' / system}.py",
        f"cd {shlex.quote(str(folder))} && . ./activate && netproof site check {system}",
        f"netproof run {system}",
    ):
        terminal.say(f"  {step}")
    return 0


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write a site's first files."""

    # A site's folder that its owner's group can write is refused; Python's own one is in it too.
    mask = os.umask(0o077)
    os.umask(mask | 0o022)
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / "site-config" / "__pycache__").mkdir(exist_ok=True)
    finally:
        os.umask(mask)
    for name in dict.fromkeys("checks" if one.startswith("checks/") else one for one in files):
        terminal.say(f"wrote {folder / name}")


def _insist_on_new(system: str, folder: Path) -> None:
    """Raise NetproofError for a name that ReFrame refuses, and a folder that has a site."""
    if not _SYSTEM.fullmatch(system) or system == "settings":
        raise NetproofError(
            f"{system}: give the name that ReFrame will have: letters, digits, _ and -, no digit"
            " first"
        )
    for name in ("activate", "site-config", "reference-values", "checks"):
        if (folder / name).exists():
            raise NetproofError(
                f"{folder / name}: is there already, and nothing was written: choose another"
                " folder, or move it away"
            )


@verb("nothing was written")
def discover(
    system: str,
    folder: Path = Path("."),
    partition: list[str] | None = None,
    interface: str = "",
    wait: float = 10,
) -> int:
    """Ask Slurm, modules and a short job in each partition, and write the files of a site."""
    from netproof.intake import trust
    from netproof.site import discover

    _insist_on_new(system, folder)
    folder.mkdir(0o755, parents=True, exist_ok=True)
    trust.insist(folder, "the folder of the site")
    with terminal.working("asking Slurm, modules and a job in each partition"):
        found = discover.discover(folder.absolute(), partition or (), interface, 60 * wait)
    own = {
        f"site-config/{system}.py": discover.site_text(system, found),
        f"reference-values/{system}.yaml": discover.references_text(system),
    }
    _write(folder, {**first_files(system), **own})
    for one in found.left_out:
        terminal.say(f"not measured: {one}", "yellow")
    for one in found.questions:
        terminal.say(f"? {one}", "yellow")
    terminal.say("next:", "bold")
    if found.questions:
        terminal.say(f"  answer the questions, # ?, in {folder / 'site-config' / system}.py")
    terminal.say(f"  cd {shlex.quote(str(folder))} && . ./activate")
    terminal.say(f"  netproof site check --job {system} && netproof run {system}")
    return 0


def first_files(system: str) -> dict[str, str]:
    """Return the text of each file of a new site, by its name in the folder."""
    site, references = folders.shipped("site-config"), folders.shipped("reference-values")
    checks = folders.shipped("checks")
    named = (site / f"{EXAMPLE}.py").read_text()
    named = named.replace(f'"name": "{EXAMPLE}"', f'"name": "{system}"')
    named = named.replace(COPY, "Change what this file says.")
    # The host names are the example's; without any ReFrame takes --system or RFM_SYSTEM.
    named = re.sub(r'"hostnames": \[[^\]]*\]', '"hostnames": []', named)
    bounds = re.sub(
        rf"\b{EXAMPLE}:", f"{system}:", (references / f"{EXAMPLE}.yaml").read_text()
    ).replace(f"site-config/{EXAMPLE}.py", f"site-config/{system}.py")
    # It is `ci/activate` for a folder without a checkout; PROGRAMS is where its programs are.
    template = Path(__file__).with_name("activate.sh")
    programs = shlex.quote(str(Path(sys.executable).parent))
    files = {
        "activate": template.read_text().replace("PROGRAMS", programs),
        "site-config/settings.py": (site / "settings.py").read_text(),
        f"site-config/{system}.py": named,
        f"reference-values/{system}.yaml": bounds,
    }
    for path in sorted(checks.rglob("*.py")):
        files[f"checks/{path.relative_to(checks)}"] = path.read_text()
    return files


@verb("cannot check")
def check(
    system: str | None = None,
    job: bool = False,
    wait: float = 10,
    full: bool = False,
    form: Form = Form.TEXT,
) -> int:
    """Check the site configuration."""
    folders.of_site()
    from netproof.commands import site_check

    with terminal.working("checking"):
        checked = site_check.CheckedSite(system, full=full, job=job, wait_s=60 * wait)
    printed(form, checked.document, lambda _: [("site", "", checked.blocks())])
    return FAILED if checked.faults else PASSED


@verb("cannot show")
def show(
    system: str | None = None,
    store: Path | None = None,
    full: bool = False,
    form: Form = Form.TEXT,
) -> int:
    """Show what will run and how long it should take."""
    folders.of_site()
    from netproof.commands import site_show

    with terminal.working("looking at past sessions"):
        found = site_show.ShownMatrix(system, store, full=full)
    printed(
        form,
        lambda: site_show.document(found),
        lambda _: [("site", "", [*site_show.blocks(found)])],
    )
    return 0
