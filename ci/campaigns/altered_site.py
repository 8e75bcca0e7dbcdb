"""The testbed's site with other environment variables, for one run."""

from __future__ import annotations

from pathlib import Path

from ci.campaigns.keeping import ROOT

SITE = ROOT / "site-config" / "testbed.py"

_BEGIN = f"""import runpy

site_configuration = runpy.run_path({str(SITE)!r})["site_configuration"]
"""


def altered_site(folder: Path, alteration: str) -> dict[str, str]:
    """Write a changed site into ``folder``; return the variables that lead ReFrame to it.

    ``alteration``: Python that changes ``site_configuration``.
    """
    place = folder / "site-config"
    place.mkdir(exist_ok=True)
    (place / "settings.py").write_text(SITE.with_name("settings.py").read_text())
    (place / SITE.name).write_text(_BEGIN + alteration)
    return {"RFM_CONFIG_PATH": str(place)}
