"""A file is replaced at once or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from netproof.intake import disk


def test_writing_replaces_the_file_behind_a_link_and_keeps_its_permissions(tmp_path):
    target, link = tmp_path / "target.yaml", tmp_path / "link.yaml"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    disk.replace(link, "new\r\n")
    assert target.read_bytes() == b"new\r\n"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "target.yaml"]


def test_a_write_that_fails_leaves_the_file_and_nothing_alongside_it(tmp_path, monkeypatch):
    path = tmp_path / "testbed.yaml"
    path.write_text("old")

    def refuse(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        disk.replace(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["testbed.yaml"]
