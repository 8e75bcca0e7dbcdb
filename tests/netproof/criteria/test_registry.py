"""Every file of the room that declares a criterion is one, with settings and a section."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from netproof.criteria import registry
from netproof.criteria.findings import Bounds
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING, CRITERIA
from netproof.criteria.settings import Settings, set_by_sites

ROOT = Path(__file__).resolve().parents[3]
DOCS = (ROOT / "docs" / "criteria.md").read_text()


def test_numbers_and_names_are_unique_and_in_order():
    numbers = [criterion.number for criterion in CRITERIA]
    assert numbers == sorted(set(numbers))
    names = [name for criterion in CRITERIA for name in criterion.findings]
    assert len(names) == len(set(names)) == len(BY_FINDING)


def test_each_key_is_a_setting_of_a_partition_and_named_in_the_docs():
    settings = Settings()
    for criterion in CRITERIA:
        for key, default in criterion.settings.items():
            assert getattr(settings, key) == default
            assert isinstance(default, Bounds)
            assert f"`{key}`" in DOCS or not set_by_sites(key)
        for key in criterion.findings.values():
            assert key is None or isinstance(getattr(settings, key), Bounds)


def test_each_criterion_on_curves_has_its_section():
    sections = {int(number) for number in re.findall(r"^## ([0-9]+)\. ", DOCS, re.MULTILINE)}
    assert {one.number for one in CRITERIA if one.judge is not None} <= sections


def test_what_is_measured_again_judges_single_sizes():
    assert set(CONFIRMED_BY_MEASURING) == {"inversion", "jump", "dropout"}


def test_each_family_is_registered_and_its_keys_are_all_settings():
    modules = {
        path.stem
        for path in (ROOT / "netproof" / "criteria").glob("*.py")
        if re.search(r"^CRITERIA = ", path.read_text(), re.MULTILINE)
    }
    assert modules == {family.__name__.rpartition(".")[2] for family in registry.FAMILIES}
    known = {field.name for field in dataclasses.fields(Settings)}
    assert known == {key for one in CRITERIA for key in one.settings} | {
        *("confirm", "counters", "curves", "disturbance", "refine"),
    }
