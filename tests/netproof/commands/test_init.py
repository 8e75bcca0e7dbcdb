"""``netproof init``: a new site's files, ready for ReFrame; existing files are not touched."""

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


def init(folder: Path, system: str = "mycluster") -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["init", "--system", system, str(folder)])
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


@pytest.mark.slow
def test_reframe_lists_its_checks(tmp_path):
    init(tmp_path)
    site_file = tmp_path / "site-config" / "mycluster.py"
    # There is no Lmod here.
    text = re.sub(r'"modules": \[[^\]]*\],', "", site_file.read_text())
    site_file.write_text(text.replace('"lmod"', '"nomod"'))
    line = ". ./activate && reframe --system mycluster -c checks -R -l"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RFM_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ran = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NetpipeTcp" in ran.stdout
    assert "ImbPingPong" in ran.stdout


def test_nothing_that_is_there_is_touched(tmp_path):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "imb.py").write_text("mine\n")
    status, said = init(tmp_path)
    assert status == 2
    assert "checks/imb.py: is there already, and nothing was written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["checks"]


@pytest.mark.parametrize("name", ["two words", "settings", "1st", "a/b", ""])
def test_a_name_that_reframe_cannot_have_is_refused(tmp_path, name):
    status, said = init(tmp_path, name)
    assert status == 2
    assert "give the name that ReFrame will have" in said
    assert not list(tmp_path.iterdir())
