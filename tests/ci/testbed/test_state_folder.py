import tempfile
from pathlib import Path

import pytest

from ci.testbed.errors import CannotRunError
from ci.testbed.state import MADE_NAMESPACE_FOLDER, MARK, StateFolder


@pytest.fixture
def place():
    # What a testbed puts into it has the longest path that a socket may have.
    with tempfile.TemporaryDirectory(prefix="netproof-") as short:
        yield Path(short) / "tb"


@pytest.fixture
def folder(place):
    made = StateFolder(place)
    made.claim()
    yield made
    made.remove()


def test_a_claimed_folder_is_marked_and_goes_without_a_trace(folder, place):
    assert folder.is_marked()
    folder.write("slurm.conf", "x\n")
    (place / "log").mkdir()
    assert folder.remove()
    assert not place.exists()


def test_a_folder_with_anything_else_in_it_is_refused_and_left_alone(place):
    place.mkdir()
    (place / "thesis.txt").write_text("mine")
    folder = StateFolder(place)
    with pytest.raises(CannotRunError, match="holds something that is not a testbed's"):
        folder.claim()
    assert not folder.remove()
    assert (place / "thesis.txt").read_text() == "mine"
    (place / "thesis.txt").unlink()
    place.rmdir()


def test_a_removal_that_was_cut_short_can_be_taken_up_again(folder, place):
    (place / "log").mkdir()
    folder.wipe()
    assert StateFolder(place).is_marked()
    assert StateFolder(place).remove()


def test_a_file_in_the_folders_place_is_refused_and_left_alone(place):
    place.write_text("mine")
    folder = StateFolder(place)
    with pytest.raises(CannotRunError, match="holds something"):
        folder.claim()
    assert not folder.remove()
    place.unlink()


def test_what_a_link_leads_to_is_never_removed(folder, place, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (place / "log").symlink_to(tmp_path)
    folder.remove()
    assert (tmp_path / "thesis.txt").exists()


def test_wiping_keeps_what_says_that_the_folder_is_a_testbeds(folder, place):
    for name in ("slurm.conf", "of-a-later-version", MADE_NAMESPACE_FOLDER):
        (place / name).touch()
    folder.wipe()
    assert {p.name for p in place.iterdir()} == {MARK, MADE_NAMESPACE_FOLDER}


def test_a_folder_of_an_earlier_boot_is_known(folder):
    assert not folder.survived_this_boot()
    folder.write("boot-id", Path("/proc/sys/kernel/random/boot_id").read_text())
    assert folder.survived_this_boot()
    folder.write("boot-id", "00000000-0000-0000-0000-000000000000\n")
    assert not folder.survived_this_boot()


@pytest.mark.parametrize(
    ("path", "says"),
    [("/tmp/" + "long/" * 20, "shorter path"), ("/tmp/a b", "letters, digits")],
)
def test_a_path_that_sockets_or_slurm_cannot_take_is_refused(path, says):
    with pytest.raises(CannotRunError, match=says):
        StateFolder(Path(path))
