"""A site of the testbed on which other work of the machine disturbs no launch."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SMALL = {"max_message_bytes": 65536, "line_rate_from_bytes": 65536, "netpipe_repeats": 4}
"""Extras of a partition whose launches take a second: where it is not size that is looked at."""

SITE_FILES = {
    "settings.py": """from pathlib import Path
from netproof.site import site
site_configuration = site.gather(Path(__file__).parent)
""",
    "testbed.py": f"""import runpy
site = runpy.run_path({str(ROOT / "site-config" / "testbed.py")!r})
site_configuration = site["site_configuration"]
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"]["criteria"]["disturbance"] = {{"others": OTHERS, "steal": OTHERS}}
    partition["extras"] |= EXTRAS
""",
}


def settings_of(folder: Path, *, others: int = 1, **extras: object) -> dict[str, str]:
    """Of a command that reports into ``folder``; a launch is disturbed above ``others`` (1: never).

    The machine under the testbed may have other work, and what tests look for is far larger.
    ``extras``: further ones of each partition.
    """
    site = folder / "site"
    site.mkdir()
    for name, text in SITE_FILES.items():
        text = text.replace("OTHERS", str(others)).replace("EXTRAS", repr(extras))
        (site / name).write_text(text)
    return {"RFM_REPORT_FILE": str(folder / "run-{sessionid}.json"), "RFM_CONFIG_PATH": str(site)}
