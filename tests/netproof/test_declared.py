"""What modules declare is found by their files, in order."""

from __future__ import annotations

import sys

import pytest

from netproof.declared import declared


@pytest.fixture
def room(tmp_path, monkeypatch):
    """``room(name=source, …)``: the name of a package with these modules."""

    def made(**modules: str) -> str:
        folder = tmp_path / "shelf"
        folder.mkdir()
        (folder / "__init__.py").touch()
        for name, source in modules.items():
            (folder / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        return "shelf"

    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] == "shelf"]:
        del sys.modules[name]


def test_a_file_more_is_an_object_more_in_order_of_its_number(room):
    thing = "from types import SimpleNamespace\nTHING = SimpleNamespace(number={})\n"
    shelf = room(b=thing.format(1), a=thing.format(2), c="OTHER = 3\n")
    assert [one.number for one in declared(shelf, "THING")] == [1, 2]


def test_what_is_not_asked_is_not_imported(room):
    shelf = room(a="raise RuntimeError\n")
    assert declared(shelf, "THING", not_asked=("a",)) == ()
