"""Where `ci/test --release` makes another release: in folders of root's alone."""

from __future__ import annotations

import os

import pytest
from made_machine import as_root

from ci.release import tree
from ci.release.errors import CannotRunError


@as_root
def test_a_folder_that_others_could_have_filled_is_refused(tmp_path):
    place = tmp_path / "netproof-release-trixie"
    tree.refuse_unsafe(place)
    place.mkdir(mode=0o755)
    tree.refuse_unsafe(place)
    for spoil in (
        lambda: place.chmod(0o777),
        lambda: os.chown(place, 65534, -1),
        lambda: (place.rmdir(), place.symlink_to("/root")),
    ):
        spoil()
        with pytest.raises(CannotRunError, match="should be a folder of root's"):
            tree.refuse_unsafe(place)
        if not place.is_symlink():
            place.chmod(0o755)
            os.chown(place, 0, -1)


@as_root
def test_a_sticky_parent_is_safe_and_a_shared_one_is_not(tmp_path):
    tmp_path.chmod(0o1777)
    tree.refuse_unsafe(tmp_path / "one")
    tmp_path.chmod(0o777)
    with pytest.raises(CannotRunError, match="nobody else may write to"):
        tree.refuse_unsafe(tmp_path / "one")
