"""``netproof site init``: a new site's files, ready for ReFrame; existing files are not touched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.site import site
from netproof.site.matrix import matrix

ROOT = Path(__file__).resolve().parents[3]


def init(folder: Path, system: str = "mycluster") -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["site", "init", system, str(folder)])
    return ran.exit_code, " ".join(ran.output.split())


def test_the_site_is_valid_and_has_the_name_and_references_of_its_own(tmp_path):
    status, said = init(tmp_path / "new")
    assert status == 0, said
    assert "netproof site check mycluster" in said
    configuration = site.load(tmp_path / "new" / "site-config" / "mycluster.py")
    (system,) = configuration["systems"]
    assert (system["name"], system["hostnames"]) == ("mycluster", [])
    assert matrix(configuration, "mycluster").cases
    references = (tmp_path / "new" / "reference-values" / "mycluster.yaml").read_text()
    assert "example:" not in references
    assert "mycluster:summit:" in references


def sourced(folder: Path, line: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """``line`` in a shell that knows no Python environment and no site."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_after_activate_the_programs_are_found_and_the_store_is_the_folders_own(tmp_path):
    place = tmp_path / "a site"
    init(place)
    shown = ". ./activate && command -v netproof reframe && echo $NETPROOF_STORE"
    ran = sourced(place, shown, NETPROOF_STORE="/shared/store")
    programs = Path(sys.executable).parent
    assert ran.stdout.splitlines() == [
        f"{programs}/netproof",
        f"{programs}/reframe",
        f"{place}/store",
    ]
    assert ran.stderr == ""


@pytest.mark.parametrize("name", ["activate", "ci/activate", "ci/testbed/activate"])
def test_another_shell_than_bash_is_refused_and_nothing_is_set(tmp_path, name):
    init(tmp_path)
    place = tmp_path if name == "activate" else ROOT
    line = f". {place / name}; echo $? ${{RFM_CONFIG_PATH-unset}} ${{NETPROOF_STORE-unset}}"
    ran = subprocess.run(
        ["dash", "-c", line],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "2 unset unset\n"
    assert ran.stderr.startswith(f"{name}: source this in bash")


def test_each_folder_has_a_store_of_its_own_whichever_was_activated_before(tmp_path):
    init(tmp_path)
    show = "echo $NETPROOF_STORE"
    ran = sourced(tmp_path, f". {ROOT}/ci/activate && {show} && . ./activate && {show}")
    assert ran.stdout.splitlines() == [f"{ROOT}/store", f"{tmp_path}/store"]
    ran = sourced(tmp_path, f". ./activate && {show} && . {ROOT}/ci/activate && {show}")
    assert ran.stdout.splitlines() == [f"{tmp_path}/store", f"{ROOT}/store"]


def test_where_the_python_environment_is_gone_activate_says_so_and_sets_nothing(tmp_path):
    init(tmp_path)
    path = tmp_path / "activate"
    path.write_text(path.read_text().replace(str(Path(sys.executable).parent), "/gone/bin"))
    ran = sourced(tmp_path, ". ./activate; echo $? ${RFM_CONFIG_PATH-unset} $PATH")
    assert ran.stdout == "2 unset /usr/bin:/bin\n"
    assert f"{path}: there is no /gone/bin/python3; install netproof there again" in ran.stderr
    assert "(netproof_programs=)" in ran.stderr


@pytest.mark.slow
def test_reframe_lists_its_checks(tmp_path):
    init(tmp_path)
    site_file = tmp_path / "site-config" / "mycluster.py"
    # There is no Lmod here.
    text = re.sub(r'"modules": \[[^\]]*\],', "", site_file.read_text())
    site_file.write_text(text.replace('"lmod"', '"nomod"'))
    ran = sourced(tmp_path, ". ./activate && reframe --system mycluster -c checks -R -l")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NetpipeTcp" in ran.stdout
    assert "ImbPingPong" in ran.stdout


def test_nothing_that_is_there_is_touched(tmp_path):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "imb.py").write_text("mine\n")
    status, said = init(tmp_path)
    assert status == 2
    assert "checks: is there already, and nothing was written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["checks"]


def test_a_group_cannot_write_what_is_run_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    mask = os.umask(0o002)
    try:
        assert init(tmp_path / "new")[0] == 0
        # The first read leaves Python's own files.
        site.load(tmp_path / "new" / "site-config" / "mycluster.py")
    finally:
        assert os.umask(mask) == 0o002
    written = [one for one in (tmp_path / "new").rglob("*") if one.is_file()]
    assert any(one.suffix == ".pyc" for one in written)
    assert not [one for one in (tmp_path / "new").rglob("*") if one.stat().st_mode & 0o022]


@pytest.mark.parametrize("name", ["two words", "settings", "1st", "a/b", ""])
def test_a_name_that_reframe_cannot_have_is_refused(tmp_path, name):
    status, said = init(tmp_path, name)
    assert status == 2
    assert "give the name that ReFrame will have" in said
    assert not list(tmp_path.iterdir())
