"""The body of ``netproof init``: the first files of a new site, copied from the examples."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import tables
from netproof.site import shipped

WRITTEN, REFUSED = 0, 2
"""Exit statuses of ``netproof init``."""

EXAMPLE = "example"
"""The system of the examples."""

_SYSTEM = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

ACTIVATE = """\
# shellcheck shell=bash
# Source this: `. ./activate`. Afterwards `reframe -c checks -r` and `netproof` work in this shell.
# netproof_programs: bin folder of the Python environment in which netproof is installed.
netproof_programs=PROGRAMS
netproof_site=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for netproof_program in python3 reframe netproof; do
    if [ ! -x "$netproof_programs/$netproof_program" ]; then
        echo "$netproof_site/activate: there is no $netproof_programs/$netproof_program; install" \
            "netproof there again, or put the bin folder of the Python environment that has" \
            "netproof now into this file (netproof_programs=)" >&2
        unset netproof_programs netproof_program netproof_site
        return 2
    fi
done
export PATH=$netproof_programs:$PATH
export RFM_CONFIG_PATH=$netproof_site/site-config
export RFM_REFERENCE_PREFIX=$netproof_site/reference-values
export RFM_REPORT_FILE=$netproof_site/reports/run-{sessionid}.json RFM_TIMESTAMP_DIRS=%FT%H-%M-%S
export NETPROOF_STORE=$netproof_site/store
export RFM_PERF_INFO_LEVEL=${RFM_PERF_INFO_LEVEL:-verbose}
unset netproof_programs netproof_program netproof_site
"""
"""`ci/activate` for a folder without a checkout; PROGRAMS is where its programs are."""


def run(folder: Path, system: str) -> int:
    """Write a new site's files into ``folder``, print the next steps, and return the exit status.

    Existing files are not touched: where a file has one of the names, none is written.
    """
    out = tables.console()
    try:
        if not _SYSTEM.fullmatch(system) or system == "settings":
            raise NetproofError(
                f"--system {system}: give the name that ReFrame will have: letters, digits, _ and -"
            )
        files = _files(system)
        there = [name for name in files if (folder / name).exists()]
        if there:
            raise NetproofError(
                f"{folder / there[0]}: is there already, and nothing was written: choose another"
                " folder, or move it away"
            )
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except (NetproofError, OSError) as error:
        tables.say(tables.console(stderr=True), f"netproof: {error}", "red")
        return REFUSED
    for name in files:
        tables.say(out, f"wrote {folder / name}")
    place = shlex.quote(str(folder))
    tables.say(out, "next:", "bold")
    for step in (
        f"put your cluster into {folder / 'site-config' / system}.py",
        f"cd {place} && . ./activate && netproof site check {system}",
        f"reframe --system {system} -c checks -r && netproof verdict",
    ):
        tables.say(out, f"  {step}")
    return WRITTEN


def _files(system: str) -> dict[str, str]:
    """Return the text of each file, by its name in the folder."""
    site, references = shipped.folder("site-config"), shipped.folder("reference-values")
    checks = shipped.folder("checks")
    named = (site / f"{EXAMPLE}.py").read_text()
    named = named.replace(f'"name": "{EXAMPLE}"', f'"name": "{system}"')
    # The host names are the example's; without any ReFrame takes --system or RFM_SYSTEM.
    named = re.sub(r'"hostnames": \[[^\]]*\]', '"hostnames": []', named)
    bounds = re.sub(
        rf"\b{EXAMPLE}:", f"{system}:", (references / f"{EXAMPLE}.yaml").read_text()
    ).replace(f"site-config/{EXAMPLE}.py", f"site-config/{system}.py")
    programs = shlex.quote(str(Path(sys.executable).parent))
    files = {
        "activate": ACTIVATE.replace("PROGRAMS", programs),
        "site-config/settings.py": (site / "settings.py").read_text(),
        f"site-config/{system}.py": named,
        f"reference-values/{system}.yaml": bounds,
    }
    for path in sorted(checks.rglob("*.py")):
        files[f"checks/{path.relative_to(checks)}"] = path.read_text()
    return files
