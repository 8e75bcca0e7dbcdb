"""docs/ becomes a site that opens without a network, whose reference follows from the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="mkdocs-material is not installed: ci/setup --test")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built with every warning as an error: links and headings that are not there."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return folder


def test_no_page_loads_anything_from_elsewhere(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 50
    for page in pages:
        loaded = re.findall(
            r"<(?:script|img|link|iframe)[^>]*?(?:src|href)=[\"']?(https?:[^\"' >]+)"
            r"|url\(\s*[\"']?(https?:[^)]+)",
            page.read_text(),
        )
        assert not loaded, page
