"""The files for cron, systemd and GitLab start a night as it wants to be started."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from made_programs import program
from typer.main import get_command
from typer.testing import CliRunner, Result

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
    # GitLab's shell executor has a login shell.
    gitlab = shlex.join(["/bin/bash", "-lc", gitlab])
    return [cron.split(None, 5)[5], service.partition("=")[2].replace("$$", "$"), gitlab]


def test_every_option_in_the_files_is_one_of_the_night_s(commands):
    night = get_command(app).commands["nightly"]
    known = {option for parameter in night.params for option in parameter.opts}
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["/bin/bash", "-lc"]
        words = shlex.split(" ".join(words[2:]).partition(" -- ")[0])
        assert {word for word in words if word.startswith("--")} <= known
        assert "--junit" in words


def test_the_crontab_has_one_night_a_day_and_paths_that_need_no_home(commands):
    (line,) = [line for line in entries(CRON) if "nightly mycluster" in line]
    assert re.fullmatch(r"\d+ \d+ \* \* \* /[^%]*", line)
    # The shell opens it before anything has made a folder.
    assert line.endswith(" >>/srv/mycluster/nightly.out")


def test_each_file_starts_a_night_of_a_new_site_in_a_login_shell(commands, pipeline, tmp_path):
    home, place = tmp_path / "home", tmp_path / "mycluster"
    home.mkdir()
    (home / ".profile").write_text("export MODULEPATH=/opt/modules\n")
    ran = CliRunner().invoke(app, ["site", "init", "mycluster", str(place)])
    assert ran.exit_code == 0
    said = []
    variables = pipeline["nightly"]["variables"]
    assert variables == {"NETPROOF_FOLDER": "/srv/mycluster", "NETPROOF_SYSTEM": "mycluster"}
    for command in commands:
        command = command.partition(" >>")[0].replace("/srv/mycluster", str(place))
        ran = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=home,
            env={
                **{"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
                **{**variables, "NETPROOF_FOLDER": str(place), "CI_PIPELINE_ID": "7"},
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
    program(tmp_path / "mail", 'echo "subject: $2; to: $3"; cat')
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
    words = shlex.split(job["script"][0])
    junit, pages = (words[words.index(option) + 1] for option in ("--junit", "--to"))
    assert job["stage"] in pipeline["stages"]
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert (job["artifacts"]["when"], job["artifacts"]["reports"]["junit"]) == ("always", junit)
    assert f"{pages}/" in job["artifacts"]["paths"]
    assert job["allow_failure"] == {"exit_codes": [2, 3]}


# Nights that nothing can be measured in: exit 2, the reason, and all is as it was.

TOO_LITTLE = ("--least-free", "1000000000")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="nobody's trust to break without root")


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``words(*more, system=, store=, to=, hook=)``: arguments of a night in this folder."""
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-0.json"))
    monkeypatch.setenv("RFM_PREFIX", str(tmp_path))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    places = {"store": tmp_path / "store", "to": tmp_path / "pages", "junit": tmp_path / "j.xml"}

    def given(*more: str, system: str = "testbed", **other: object) -> list[str]:
        options = {**places, "hook": f"cat >{shlex.quote(str(tmp_path))}/message", **other}
        return [
            *("nightly", system, *more),
            *(word for key, value in options.items() for word in (f"--{key}", str(value))),
        ]

    return given


def night(words: list[str]) -> Result:
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2, ran.output
    return ran


def message(folder: Path) -> str:
    """The input of the hook."""
    return (folder / "message").read_text()


SILENT = (
    "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/none\n"
    "NodeName=localhost\nPartitionName=gige Nodes=localhost\nMessageTimeout=2\n"
)


@pytest.mark.parametrize(
    ("variable", "name", "more", "said"),
    [
        ("SLURM_CONF", "silent.conf", (), "slurmctld does not answer: "),
        ("SLURM_CONF", "gone.conf", (), "SLURM_CONF is '{}', and there is no such file"),
        ("RFM_REPORT_FILE", "$(touch pwned)/run-0.json", (), "'{}': ReFrame expands or runs"),
        ("RFM_PREFIX", "`touch pwned`", (), "'{}': ReFrame expands or runs"),
        ("RFM_PREFIX", "a b", (), "'{}': ReFrame expands or runs '$' and '`'"),
        ("RFM_PREFIX", "", TOO_LITTLE, "{}/store: the file system is too full: "),
    ],
)
def test_a_night_that_cannot_measure_says_why_to_all_and_leaves_no_store(
    words, tmp_path, monkeypatch, variable, name, more, said
):
    (tmp_path / "silent.conf").write_text(SILENT)
    value = tmp_path / name
    monkeypatch.setenv(variable, str(value))
    ran = night(words(*more))
    why = f"NOT JUDGED: {said.format(value.parent if value.suffix == '.json' else value)}"
    assert why in ran.stdout
    assert why in message(tmp_path)
    (error,) = ElementTree.parse(tmp_path / "j.xml").getroot()[0].iter("error")
    assert why.partition(": ")[2] in error.get("message")
    assert not (tmp_path / "store").exists()
    assert not list(tmp_path.rglob("pwned"))


@as_root
@pytest.mark.parametrize("where", ["store", "to", "hook"])
def test_a_place_that_everybody_can_write_is_not_used(words, tmp_path, where):
    public = tmp_path / "public"
    public.mkdir()
    (public / "run").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    for path in (public, public / "run"):
        path.chmod(0o777)
    ran = night(words(**{where: public / "run"}))
    assert f"{public}" in ran.stdout
    assert " (mode 0777, root's) can be written by everybody" in ran.stdout
    assert [path.name for path in public.iterdir()] == ["run"]
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "store").exists()
    if where == "hook":
        assert f"the hook '{public / 'run'}' was not run: " in ran.stderr


def test_a_hook_that_fails_is_reported(words):
    ran = night(words(*TOO_LITTLE, hook="exit 7"))
    assert "the hook 'exit 7' ended with status 7: nobody may have been notified" in ran.stderr


@pytest.mark.slow
def test_a_full_standard_output_and_a_bare_locale_leave_the_hook_its_message(words, tmp_path):
    command = [str(ROOT / "ci" / "nightly"), *words(*TOO_LITTLE, store=tmp_path / "stör▲")[1:]]
    ran = subprocess.run(
        ["bash", "-c", f"{shlex.join(command)} >/dev/full"],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "standard output cannot be written: No space left on device" in ran.stderr
    assert "stör▲: the file system is too full" in message(tmp_path)
