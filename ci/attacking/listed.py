"""Single attacks with their tests, and damaged stores."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from ci import store_flips
from ci.attacking.inputs import ROOT

FLIPS = "bits of a store flipped, files cut"
_JUDGING, _HISTORY = (
    "tests/netproof/commands/test_judging.py",
    "tests/netproof/history/test_command.py",
)
_PAGES, _EXPORT = (
    "tests/netproof/present/html/test_pages.py",
    "tests/netproof/present/test_export.py",
)
_NETPIPE, _LOADING = (
    "tests/netproof/benchmarks/test_parse_netpipe.py",
    "tests/netproof/intake/test_loading.py",
)
_TRUST, _REFERENCES = (
    "tests/netproof/intake/test_trust.py",
    "tests/netproof/verdict/test_references.py",
)
LISTED = {
    "code and configuration where others can write": (
        _TRUST,
        f"--deselect={_TRUST}::TestASlurmConfThatNamesNothing",
    ),
    "reports that contradict themselves, references since changed": (
        "tests/netproof/verdict/test_contradictions.py",
    ),
    "faults that nobody foresaw, faulty input to every verb": (
        "tests/netproof/commands/test_entry.py",
        "tests/netproof/commands/test_exit_statuses.py",
    ),
    "a link to nothing, a report cut short among others": (
        f"{_JUDGING}::test_a_link_to_nothing_alongside_the_reports_is_named_and_stops_no_verdict",
        f"{_JUDGING}::test_an_earlier_report_that_cannot_be_read_is_told",
    ),
    "a damaged session among sound ones": (
        f"{_HISTORY}::test_a_damaged_session_is_named_and_left_out_and_the_exit_status_says_so",
        f"{_HISTORY}::test_with_a_damaged_session_what_is_worse_fails_all_the_same",
        f"{_HISTORY}::test_where_no_session_can_be_read_the_files_are_named",
    ),
    "keys twice, no numbers, bombs, depth, endless expressions": (
        _LOADING,
        f"{_REFERENCES}::test_what_loosens_a_bound_unseen_or_never_ends_is_refused_with_its_line",
        f"{_REFERENCES}::test_bombs_of_aliases_and_merges_are_refused_at_once",
        "tests/netproof/criteria/test_settings.py",
    ),
    "pipes and devices in a file's place": (
        f"{_LOADING}::test_what_is_no_file_is_refused_and_not_waited_for",
    ),
    "a line of 100 MB": (f"{_NETPIPE}::test_a_line_of_100_mb_is_quoted_by_its_beginning",),
    "a NetPIPE file that lost lines": (
        f"{_NETPIPE}::test_a_file_from_which_lines_are_missing_is_refused_with_their_sizes",
        f"{_NETPIPE}::test_sizes_that_no_run_visits_are_refused",
    ),
    "control characters in charts and pages": (
        f"{_PAGES}::test_charts_of_names_with_control_characters_are_xml",
        "tests/netproof/present/html/test_html.py",
    ),
    "formulas in CSV": (
        f"{_EXPORT}::test_text_that_a_spreadsheet_takes_for_a_formula_is_marked_as_text",
    ),
    "a SLURM_CONF that names nothing": (f"{_TRUST}::TestASlurmConfThatNamesNothing",),
    "text from outside in job scripts, JUnit, hook, crontab, names": (
        "tests/netproof/commands/test_hostile_text.py",
    ),
}
"""Single attacks, and the tests that try them."""


def flips(tries: int, seed: int) -> tuple[int, str, list[str]]:
    """Damage a store; return the number of faults, their outcome, and those not found."""
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        found = store_flips.run(Path(folder), store_flips.REPORTS, tries=tries, seed=seed)
    count = sum(one.tries for one in found)
    named = sum(min(one.named, one.checked) for one in found)
    wrong = [
        f"{one.name}: {one.named} named when read, {one.checked} by the check, of {one.tries}"
        for one in found
        if not one.named == one.checked == one.tries
    ]
    return count, f"{named:,} found and named", wrong


def listed(tests: Sequence[str]) -> tuple[int, str, list[str]]:
    """Run an attack's tests; return their number, their outcome, and the failures."""
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        junit = Path(folder) / "junit.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if not junit.exists():
            end = (ran.stdout + ran.stderr)[-300:].strip()
            return 0, "not tried", [f"pytest left no result (ci/setup --test installs it): {end}"]
        cases = list(ET.parse(junit).getroot().iter("testcase"))
    wrong = [
        f"{case.get('classname')}::{case.get('name')}: {child.tag}"
        for case in cases
        for child in case
        if child.tag in ("failure", "error", "skipped")
    ]
    if ran.returncode and not wrong:
        wrong = [f"pytest ended with {ran.returncode}: {ran.stdout[-300:]}"]
    held = len(cases) - len({sentence.rpartition(":")[0] for sentence in wrong})
    return len(cases), f"{held} held" if cases else "not tried", wrong
