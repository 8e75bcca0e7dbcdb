"""What of a store is not what was written is named by its file, whoever reads it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ci.evaluation import store_flips
from netproof.commands.cli import app
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.store import Store, StoredSession, questions
from netproof.store import folder as store_folder
from netproof.store.folder import SESSION, VERDICT
from netproof.store.tables import TABLES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SICK, PASSED = (ROOT / "tests" / "data" / "sessions" / f"{n}.json" for n in ("sick", "passed"))


@pytest.fixture(autouse=True)
def _site(tmp_path, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-0.json"))


@pytest.fixture
def stored(tmp_path) -> tuple[Store, StoredSession]:
    store = Store.create(tmp_path / "store")
    return store, ingest(store, SICK).stored


def checked(store: Store) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["store", "check", "--store", str(store.folder)])
    return ran.exit_code, " ".join(ran.stdout.split())


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_sound_store_is_verified(stored):
    status, said = checked(stored[0])
    assert (status, said) == (0, "1 session: 1 verified, 0 damaged")


@pytest.mark.parametrize(
    "name", [*(f"{table}.parquet" for table in TABLES), SESSION, VERDICT, store_folder.CHECKSUMS]
)
def test_a_flipped_bit_in_any_file_is_named(stored, name):
    store, session = stored
    path = store.path(session) / name
    flip(path, path.stat().st_size // 2)
    status, said = checked(store)
    assert status == 1
    assert f"{path.name}: is damaged: " in said
    assert said.endswith("1 session: 0 verified, 1 damaged")
    with pytest.raises(NetproofError, match=rf"{re.escape(str(path))}: is damaged: "):
        store_flips.stored(store, session, path)


def test_every_question_verifies_what_it_reads(stored):
    store, session = stored
    asked = {
        "cases.parquet": [
            lambda: questions.passed(store, session),
            lambda: questions.crashes(store, [session]),
        ],
        "curves.parquet": [
            lambda: questions.nightly(store, [session], None),
        ],
        "sessions.parquet": [
            lambda: questions.labels(store, [session]),
            lambda: questions.with_label(store, "kernel=6.1"),
            lambda: ingest(store, SICK),
        ],
        "launches.parquet": [lambda: questions.seconds(store, [session])],
    }
    for name, several in asked.items():
        path = store.path(session) / name
        whole = path.read_bytes()
        flip(path, len(whole) // 3)
        for ask in several:
            with pytest.raises(NetproofError, match=rf"{name}: is damaged: the checksum"):
                ask()
        path.write_bytes(whole)


def test_what_is_missing_or_too_much_is_named(stored):
    store, session = stored
    folder = store.path(session)
    (folder / "other.parquet").write_bytes(b"")
    (folder / "tests.parquet").unlink()
    status, said = checked(store)
    assert status == 1
    assert "other.parquet: is damaged: it is no file of a session's" in said
    assert "tests.parquet: is damaged: No such file" in said


def test_a_session_that_lost_its_checksums_is_damaged(stored):
    store, session = stored
    (store.path(session) / store_folder.CHECKSUMS).unlink()
    assert checked(store)[0] == 1
    with pytest.raises(NetproofError, match="checksums: is damaged: No such file"):
        questions.load(store, session)


def test_another_sessions_file_is_named(stored):
    store, session = stored
    other = ingest(store, PASSED).stored
    shutil.copy(store.path(other) / SESSION, store.path(session) / SESSION)
    with pytest.raises(NetproofError, match=r"session\.jsonl\.zst: is damaged: it has \d+ bytes"):
        questions.load(store, session)
