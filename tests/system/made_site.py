"""A site of the testbed on which other work of the machine disturbs no launch."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SMALL = {"max_message_bytes": 65536, "line_rate_from_bytes": 65536, "netpipe_repeats": 4}
"""Extras of a partition whose launches take a second: where it is not size that is looked at."""

TESTBED_SITE = f"""import runpy
site = runpy.run_path({str(ROOT / "site-config" / "testbed.py")!r})
site_configuration = site["site_configuration"]
"""
UNDISTURBED = """for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"]["criteria"]["disturbance"] = {"others": OTHERS, "steal": OTHERS}
    partition["extras"] |= EXTRAS
"""

NETPIPE_ALONE = """
SHOWN = dict.fromkeys(("inversion", "jump", "dropout", "mpi_loss"), {"warn": None, "fail": None})
SHOWN |= dict.fromkeys(("envelope", "line_rate"), {"fail": None})
for partition in site_configuration["systems"][0]["partitions"]:
    partition["environs"] = FEW.get(partition["name"], ["mpich"])
    # No IMB, hence no rounds of pairs.
    partition["extras"]["coverage_percent"] = 0
    partition["extras"]["criteria"] = dict(SHOWN)
for environment in site_configuration["environments"]:
    environment["features"] = [name for name in environment["features"] if name != "imb"]
    environment["extras"].setdefault("absent", {})["imb"] = "no part of this test"
"""
"""MPICH, or those of ``FEW``, and no bound or criterion that a busy machine could fail."""


def written_site(folder: Path, changes: str, begin: str = TESTBED_SITE) -> str:
    """Write the testbed's site, changed by lines of Python, into ``folder``/site; return that."""
    site = folder / "site"
    site.mkdir()
    (site / "settings.py").write_text((ROOT / "site-config" / "settings.py").read_text())
    (site / "testbed.py").write_text(begin + changes)
    return str(site)


def settings_of(
    folder: Path, more: str = "", *, others: int = 1, **extras: object
) -> dict[str, str]:
    """Variables of a command that reports into ``folder``.

    A launch is disturbed above ``others`` (1: never).

    The machine under the testbed may have other work, and what tests look for is far larger.
    ``more``: lines of the site's file; ``extras``: further ones of each partition.
    """
    changes = UNDISTURBED.replace("OTHERS", str(others)).replace("EXTRAS", repr(extras))
    site = written_site(folder, changes + more)
    return {"RFM_REPORT_FILE": str(folder / "run-{sessionid}.json"), "RFM_CONFIG_PATH": site}
