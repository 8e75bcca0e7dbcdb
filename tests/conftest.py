"""Parts of the tests, the virtual Slurm cluster, commands, and recorded sessions judged once."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
import hypothesis
import pytest
import typer.testing

ROOT = Path(__file__).resolve().parents[1]
TESTBED = ROOT / "ci" / "testbed" / "testbed"
# ci/ is no installed package.
sys.path.insert(0, str(ROOT))

from ci.testbed.state import CONF, DEFAULT  # noqa: E402

if TYPE_CHECKING:
    from netproof.verdict.session_verdict import JudgedSession

Run = Callable[..., subprocess.CompletedProcess[str]]
SYSTEM = ROOT / "tests" / "system"
PARTS = {
    "quick": lambda system, slow: not system and not slow,
    "unit": lambda system, slow: not system,
    "system": lambda system, slow: system,
}
"""Names of parts to which tests are in them, by their place and their mark."""

# Each call of a command in a test would make all commands again, of the same functions.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# A busy machine takes long for an example; that is no failure.
hypothesis.settings.register_profile("whole", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", choices=PARTS, help="unit: not tests/system; quick: of these, not the slow ones"
    )
    parser.addoption(
        "--all", action="store_true", help="with the tests marked nightly, and Hypothesis at length"
    )


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("whole" if config.getoption("--all") else "quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread the files without a test of the part: that takes seconds in each process."""
    part = config.getoption("--part")
    system = collection_path.is_relative_to(SYSTEM)
    if part is None or not (system or collection_path.suffix == ".py"):
        return None
    return None if PARTS[part](system, False) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("--part")
    if part is None:
        return
    kept, left_out = [], []
    for item in items:
        system = item.path.is_relative_to(SYSTEM)
        fits = PARTS[part](system, item.get_closest_marker("slow") is not None)
        if item.get_closest_marker("nightly") is not None:
            fits = fits and config.getoption("--all")
        (kept if fits else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@functools.cache
def _activated(enter: str, outside: frozenset[tuple[str, str]]) -> dict[str, str]:
    """Environment of a shell that sourced this file."""
    shown = subprocess.run(
        ["bash", "-c", f'. "{ROOT}/{enter}" && env -0'],
        env=dict(outside),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return dict(entry.split("=", 1) for entry in shown.split("\0") if entry)


@pytest.fixture(scope="session")
def charts_of() -> Callable[[str], list[Any]]:
    """``charts_of(page)``: its charts as in the page, with what they share in its place."""

    def charts(page: str) -> list[Any]:
        scripts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
        *several, parts = map(json.loads, scripts)

        def whole(value: Any) -> Any:
            if isinstance(value, list):
                return list(map(whole, value))
            if not isinstance(value, dict):
                return value
            if "part" in value:
                return whole(parts[value["part"]])
            return {key: whole(one) for key, one in value.items()}

        return list(map(whole, several))

    return charts


@pytest.fixture(scope="session")
def run() -> Run:
    """``run(folder, *command, **settings)``: a command in ``folder``, as after ci/activate."""

    def run_in(folder: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        folder.mkdir(parents=True, exist_ok=True)
        ours = ("RFM_", "SLURM_", "PYTEST_")
        outside = frozenset(one for one in os.environ.items() if not one[0].startswith(ours))
        # Where there is a testbed it is entered.
        enter = "ci/testbed/activate" if (DEFAULT / CONF).exists() else "ci/activate"
        own = {"RFM_REPORT_FILE": str(folder / "run-0.json"), **settings}
        return subprocess.run(
            command,
            cwd=folder,
            env=_activated(enter, outside) | own,
            capture_output=True,
            text=True,
            check=False,
        )

    return run_in


@pytest.fixture(scope="session")
def testbed_as_found() -> Iterator[None]:
    """Leave the machine with a testbed only if it had one."""
    was_up = subprocess.run([TESTBED, "status"], capture_output=True, check=False).returncode == 0
    yield
    if not was_up:
        subprocess.run([TESTBED, "down"], capture_output=True, check=True)


@pytest.fixture(scope="module")
def other_testbed(testbed_as_found: None) -> Iterator[Callable[[Path], None]]:
    """``other_testbed(topology)`` brings one up; the default testbed is back at the end."""

    def bring(*verb: str) -> None:
        done = subprocess.run([TESTBED, *verb], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def up(topology: Path) -> None:
        bring("down")
        bring("up", "--topology", str(topology))

    yield up
    bring("down")
    bring("up")


@pytest.fixture(scope="module")
def testbed(testbed_as_found: None) -> None:
    """The default testbed, up and whole, whatever other tests did to it."""
    up = subprocess.run([TESTBED, "up"], capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stdout + up.stderr


@pytest.fixture(autouse=True)
def answers_are_as_their_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold each document that a test has a verb print to the verb's schema in the wheel."""
    from netproof.present import documents

    write, found = documents.write, []

    def checked(document: Mapping[str, Any], out: TextIO) -> None:
        write(document, out)
        if context := click.get_current_context(silent=True):
            from made_answers import faults, written

            _, path = context.command_path.split(" ", 1)
            verb = "history" if path == "history show" else path
            found.extend(faults(verb + " --by" * ("by" in document), written(document)))

    monkeypatch.setattr(documents, "write", checked)
    yield
    assert found == []


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's sites and references, an empty folder of reports, and no store."""
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-{sessionid}.json"))
    for name in ("RFM_SYSTEM", "NETPROOF_STORE", "NETPROOF_TOPOLOGY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., JudgedSession]]:
    """``judge(session, system)``: a recorded session, or a path, judged by the project's sites."""
    from netproof.verdict import session_verdict

    reports = tmp_path_factory.mktemp("reports") / "run-{sessionid}.json"

    @functools.cache
    def judged(session: str | Path, system: str | None = None) -> JudgedSession:
        path = (
            ROOT / "tests" / "data" / "sessions" / session if isinstance(session, str) else session
        )
        return session_verdict.judge_session(session_verdict.find(path), system=system)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
        patch.setenv("RFM_REPORT_FILE", str(reports))
        yield judged
