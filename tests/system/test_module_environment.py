"""An MPI library that a module brings is an environment, without Spack; Debian's modules do it."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_site import written_site

from netproof.session import session

ROOT = Path(__file__).resolve().parents[2]

MODULEFILE = f"""#%Module
prepend-path PATH {ROOT}/.opt/mpich/bin
prepend-path LD_LIBRARY_PATH {ROOT}/.opt/mpich/lib
setenv MPIR_CVAR_CH4_NETMOD ofi
setenv FI_PROVIDER tcp
setenv MPIR_CVAR_CH4_PROGRESS_THROTTLE 1
setenv MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT 1
"""

SITE = f"""import runpy
site_configuration = runpy.run_path("{ROOT}/site-config/testbed.py")["site_configuration"]
(system,) = site_configuration["systems"]
system["modules_system"] = "tmod4"
system["partitions"] = system["partitions"][:1]
system["partitions"][0]["environs"] = ["mpich-module"]
system["partitions"][0]["extras"]["baseline"] = "mpich-module"
# A job's shell is no login shell, and knows no `module` until it is told.
system["partitions"][0]["prepare_cmds"] = [
    ". /etc/profile.d/modules.sh",
    "module use FOLDER/modules",
]
site_configuration["environments"] = [
    {{
        "name": "mpich-module",
        "modules": ["mpich/5.0.2"],
        "features": ["mpi", "mpich", "netpipe-tcp", "netpipe-mpi", "imb"],
        "extras": {{
            "mpi": "MPICH 5.0.2, a module",
            "pmi": "pmi2",
            "absent": {{"osu": "it is in no module"}},
        }},
    }}
]
"""

IMB_PINGPONG = ("-n", "ImbPingPong", "-S", "launches=1", "-S", "ImbJob.functions=PingPong")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """A site whose only environment is a module, as ReFrame's environment variables."""
    module = tmp_path / "modules" / "mpich" / "5.0.2"
    module.parent.mkdir(parents=True)
    module.write_text(MODULEFILE)
    site = written_site(tmp_path, SITE.replace("FOLDER", str(tmp_path)), begin="")
    return {"RFM_CONFIG_PATH": site, "MODULEPATH": str(module.parents[1])}


def reframe(*options: str) -> tuple[str, ...]:
    return ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), *options)


def test_its_jobs_load_the_module_before_they_measure(run, tmp_path, settings):
    dry = run(tmp_path / "dry", *reframe(*IMB_PINGPONG, "--dry-run"), **settings)
    assert dry.returncode == 0, dry.stdout + dry.stderr
    (script,) = (tmp_path / "dry").rglob("ImbJob_*/rfm_job.sh")
    lines = script.read_text().splitlines()
    order = [". /etc/profile.d/modules.sh", "module load mpich/5.0.2", "bash launches.sh"]
    assert [line for line in lines if line in order] == order


def test_a_module_that_is_not_there_fails_the_run(run, tmp_path, settings):
    (tmp_path / "modules" / "mpich" / "5.0.2").unlink()
    ran = run(tmp_path / "run", *reframe(*IMB_PINGPONG, "-r"), **settings)
    assert ran.returncode != 0
    assert "Unable to locate a modulefile for 'mpich/5.0.2'" in ran.stdout + ran.stderr


@pytest.mark.nightly
@pytest.mark.testbed
@pytest.mark.usefixtures("testbed")
def test_it_measures_on_the_testbed(run, tmp_path, settings):
    run(tmp_path / "run", *reframe(*IMB_PINGPONG, "-r"), **settings)
    report = session.load(tmp_path / "run" / "run-0.json")
    (result,) = [result for result in report.results if result.case is not None]
    assert result.measured is not None, result.reason
    assert result.case.function == "PingPong"
    assert result.extras["environment_extras"]["mpi"] == "MPICH 5.0.2, a module"
