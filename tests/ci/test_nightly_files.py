"""The files for cron, systemd and GitLab start a night as it wants to be started."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from netproof.commands.cli import app

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "ci"
CRON = CI / "nightly.cron"
SERVICE, TIMER = CI / "netproof-nightly.service", CI / "netproof-nightly.timer"


def entries(path: Path) -> list[str]:
    """Lines without comments and empty ones."""
    lines = path.read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


@pytest.fixture(scope="module")
def pipeline() -> dict:
    return yaml.safe_load((CI / "gitlab-ci.yml").read_text())


@pytest.fixture
def commands(pipeline) -> list[str]:
    """The command of each file."""
    (cron,) = [line for line in entries(CRON) if "nightly mycluster" in line]
    (service,) = [line for line in entries(SERVICE) if line.startswith("ExecStart=")]
    (gitlab,) = pipeline["nightly"]["script"]
    return [cron.split(None, 5)[5], service.partition("=")[2].replace("$$", "$"), gitlab]


def test_every_option_in_the_files_is_one_of_the_night_s(commands):
    night = get_command(app).commands["nightly"]
    known = {option for parameter in night.params for option in parameter.opts}
    for command in commands:
        words = shlex.split(command.partition(" -- ")[0])
        assert words[:2] == ["/bin/bash", "-lc"] or words[0] == "ci/nightly"
        assert {word for word in words if word.startswith("--")} <= known
        assert "--junit" in words


def test_the_crontab_has_one_night_a_day_and_paths_that_need_no_home(commands):
    (line,) = [line for line in entries(CRON) if "nightly mycluster" in line]
    assert re.fullmatch(r"\d+ \d+ \* \* \* /.*", line)
    assert "%" not in line
    # The shell opens it before anything has made a folder.
    assert line.endswith(" >>/srv/mycluster/nightly.out")
    names = [line.partition("=")[0] for line in entries(CRON) if line not in commands[0]][:-1]
    assert {"NETPROOF_HOOK", "SHELL"} <= set(names)


def test_cron_and_systemd_start_a_night_of_a_new_site_in_a_login_shell(commands, tmp_path):
    home, place = tmp_path / "home", tmp_path / "mycluster"
    home.mkdir()
    (home / ".profile").write_text("export MODULEPATH=/opt/modules\n")
    ran = CliRunner().invoke(app, ["site", "init", "mycluster", str(place)])
    assert ran.exit_code == 0
    said = []
    for command in commands[:2]:
        command = command.partition(" >>")[0].replace("/srv/mycluster", str(place))
        ran = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=home,
            env={
                **{"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
                "SLURM_CONF": "/nonexistent/slurm.conf",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (2, "")
        said.append(ran.stdout)
    for one in said:
        assert "netproof mycluster: NOT JUDGED" in one
        assert "SLURM_CONF" in one
        assert "MODULEPATH" not in one


def test_the_hook_of_the_files_makes_the_first_line_the_subject(tmp_path):
    (hook,) = [line.partition("=")[2] for line in entries(CRON) if line.startswith("NETPROOF_HOOK")]
    mail = tmp_path / "mail"
    mail.write_text('#!/bin/sh\necho "subject: $2; to: $3"; cat\n')
    mail.chmod(0o755)
    sent = subprocess.run(
        ["/bin/sh", "-c", hook],
        input="netproof x: PASSED\n\ndetails\n",
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert sent == "subject: netproof x: PASSED; to: network@example.org\n\ndetails\n"
    assert hook.replace('"', '\\"') in SERVICE.read_text()


def test_systemd_takes_both_units(tmp_path):
    for unit in (SERVICE, TIMER):
        text = unit.read_text()
        (tmp_path / unit.name).write_text(text.replace("User=netproof", "User=root"))
    units = [str(tmp_path / unit.name) for unit in (SERVICE, TIMER)]
    ran = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_pipeline_keeps_what_a_night_left_and_tells_its_exit_statuses_apart(pipeline):
    job = pipeline["nightly"]
    assert job["stage"] in pipeline["stages"]
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert job["artifacts"]["when"] == "always"
    words = shlex.split(job["script"][0])
    assert job["artifacts"]["reports"]["junit"] == words[words.index("--junit") + 1]
    assert f"{words[words.index('--to') + 1]}/" in job["artifacts"]["paths"]
    assert job["allow_failure"] == {"exit_codes": [2, 3]}
