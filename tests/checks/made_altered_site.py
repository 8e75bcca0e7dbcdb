"""A site's folder whose testbed is altered by a text of Python."""

import shutil
from pathlib import Path

SITES = Path(__file__).resolve().parents[2] / "site-config"


def altered_site(folder: Path, text: str) -> Path:
    """Make it in ``folder``; ``SITE`` in the text stands for the testbed's own file."""
    site = folder / "site"
    site.mkdir()
    shutil.copy(SITES / "settings.py", site)
    (site / "testbed.py").write_text(text.replace("SITE", str(SITES / "testbed.py")))
    return site
