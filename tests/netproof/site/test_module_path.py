"""A shell without a module system, such as cron's, is noticed before anything is measured."""

from __future__ import annotations

import pytest
from made_sites import written

from netproof.site import site
from netproof.site.matrix import matrix
from netproof.site.module_path import missing


@pytest.fixture(autouse=True)
def shell_of_cron(monkeypatch):
    monkeypatch.delenv("MODULEPATH", raising=False)


@pytest.fixture
def why(configuration, tmp_path):
    """``why(system, modules, **more)``: what is missing for an environment with these modules."""

    def asked(system: str, modules: list, **more: object) -> str:
        configuration["systems"][0]["modules_system"] = system
        configuration["environments"][0]["modules"] = modules
        written(tmp_path, configuration | more)
        gathered = site.gather(tmp_path)
        return missing(gathered, "cluster", matrix(gathered, "cluster"))

    return asked


@pytest.mark.parametrize("system", ["tmod4", "lmod", "tmod32"])
def test_without_modulepath_no_module_can_be_loaded_and_a_login_shell_is_the_remedy(why, system):
    assert why(system, ["gcc/13", {"name": "mpich/4.2"}]) == (
        "modules gcc/13, mpich/4.2 cannot be loaded: MODULEPATH is not set, as in cron's shell;"
        " use a login shell: bash -lc '…'"
    )


def test_in_a_login_shell_nothing_is_missing(why, monkeypatch):
    monkeypatch.setenv("MODULEPATH", "/opt/modules")
    assert why("tmod4", ["mpich/4.2"]) == ""


@pytest.mark.parametrize(
    ("system", "modules", "more"),
    [
        ("nomod", ["mpich/4.2"], {}),
        ("spack", ["mpich/4.2"], {}),
        ("tmod4", [], {}),
        ("tmod4", [{"name": "mpich/4.2", "path": "/opt/modules"}], {}),
        ("tmod4", ["mpich/4.2"], {"general": [{"resolve_module_conflicts": False}]}),
    ],
    ids=["no modules", "spack", "none needed", "a path of its own", "the job loads them"],
)
def test_what_needs_no_modulepath_is_not_asked_for_one(why, system, modules, more):
    assert why(system, modules, **more) == ""
