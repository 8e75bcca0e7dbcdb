"""Every file of the room that declares a criterion is a family, with settings and a page."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from netproof.criteria import registry
from netproof.criteria.findings import Bounds
from netproof.criteria.registry import CRITERIA
from netproof.criteria.settings import Settings, set_by_sites

ROOT = Path(__file__).resolve().parents[3]
DOCS = (ROOT / "docs" / "criteria.md").read_text()


def test_each_key_is_a_setting_of_a_partition_and_named_in_the_docs():
    settings = Settings()
    for criterion in CRITERIA:
        assert getattr(settings, criterion.key) == criterion.bounds
        assert isinstance(criterion.bounds, Bounds)
        assert f"`{criterion.key}`" in DOCS or not set_by_sites(criterion.key)


@pytest.mark.parametrize("family", registry.FAMILIES, ids=lambda family: family.__name__)
def test_each_family_has_a_page_whose_first_screen_says_what_it_means_and_what_to_do(family):
    name = family.__name__.rpartition(".")[2]
    page = (ROOT / "docs" / "criteria" / f"{name}.md").read_text()
    screen = "\n".join(page.splitlines()[:30])
    assert "**What it usually means.**" in screen
    assert "**What to do.**" in screen
    for criterion in family.CRITERIA:
        assert criterion.name.split(" of ")[0].split(" at a ")[0].lower() in page.lower()


def test_each_family_is_registered_and_its_keys_are_all_settings():
    modules = {
        path.stem
        for path in (ROOT / "netproof" / "criteria").glob("*.py")
        if re.search(r"^CRITERIA = ", path.read_text(), re.MULTILINE)
    }
    assert modules == {family.__name__.rpartition(".")[2] for family in registry.FAMILIES}
    known = {field.name for field in dataclasses.fields(Settings)}
    assert known == {one.key for one in CRITERIA} | {
        *("confirm", "counters", "curves", "disturbance", "refine"),
    }
