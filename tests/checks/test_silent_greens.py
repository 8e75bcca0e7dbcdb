"""A run that measured nothing is green for ReFrame, and not for netproof."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GIGE = ("reframe", "--system", "testbed:gige", "-c")
VERDICT = ("netproof", "verdict", "run-0.json", "--system", "testbed:gige")


def unwrapped(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_missing_reference_file_fails_with_its_name(run, tmp_path):
    ran = run(
        tmp_path,
        *(*GIGE, str(ROOT / "checks"), "-p", "mpich", "-n", "ImbPingPong", "-r"),
        RFM_REFERENCE_PREFIX=str(tmp_path),
    )
    assert ran.returncode != 0
    judged = run(tmp_path, *VERDICT)
    assert judged.returncode == 1
    assert f"no references, {tmp_path}/testbed.yaml" in unwrapped(judged.stdout)
    assert (
        "mpich IMB PingPong 2 ranks: did not run, since the job that measures for it failed"
        in unwrapped(judged.stdout)
    )


def test_a_check_file_with_an_import_error_is_not_passed(run, tmp_path):
    checks = tmp_path / "checks"
    checks.mkdir()
    text = (ROOT / "checks" / "imb.py").read_text()
    (checks / "imb.py").write_text(text.replace("ImbCheck", "ImbChek", 1))
    ran = run(tmp_path, *GIGE, str(checks), "-r")
    assert "cannot import name 'ImbChek'" in ran.stdout + ran.stderr
    judged = run(tmp_path, *VERDICT)
    assert judged.returncode == 2
    assert "ReFrame leaves no report where no test ran" in unwrapped(judged.stderr)


@pytest.mark.parametrize("selection", [("-n", "NoSuchCheck"), ("-p", "nosuchmpi")])
def test_nothing_selected_is_not_passed(run, tmp_path, selection):
    ran = run(tmp_path, *GIGE, str(ROOT / "checks"), *selection, "-r")
    assert ran.returncode == 0
    assert "Ran 0/0" in ran.stdout
    judged = run(tmp_path, *VERDICT)
    assert judged.returncode == 2
    assert "ReFrame leaves no report where no test ran" in unwrapped(judged.stderr)


@pytest.mark.parametrize(
    ("named", "otherwise", "missing"),
    [
        ("ImbPingPong:", "ImbPingPongs:", "intelmpi"),
        ("'testbed:.*': {'.*': {2", "'testbed:fast.*': {'.*': {2", "key 'testbed:gige'"),
        ("{'.*': {2", "{'openmpi': {2", "key 'intelmpi'"),
        ("{2: *landmarks", "{8: *landmarks", "key 2"),
    ],
    ids=["class", "partition", "environment", "ranks"],
)
def test_what_the_references_do_not_name_fails_before_anything_runs(
    run, tmp_path, named, otherwise, missing
):
    text = (ROOT / "reference-values" / "testbed.yaml").read_text()
    assert named in text
    (tmp_path / "testbed.yaml").write_text(text.replace(named, otherwise))
    ran = run(
        tmp_path,
        *(*GIGE, str(ROOT / "checks"), "-p", "intelmpi", "-n", "ImbPingPong", "--dry-run"),
        RFM_REFERENCE_PREFIX=str(tmp_path),
    )
    assert ran.returncode != 0
    reason = re.search("testbed.yaml has no ImbPingPong for testbed:gige, .*", ran.stdout)[0]
    assert missing in reason
    assert "object at 0x" not in reason
