"""Each page of a fabric has a whole site, which loads without a fault and can be measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netproof.benchmarks import registry
from netproof.site import discover, site
from netproof.site.matrix import jobs, matrix
from netproof.verdict.references import ReferenceFile

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("infiniband", "roce", "slingshot", "gpu-nodes", "air-gapped")


@pytest.mark.parametrize("page", PAGES)
def test_the_site_of_a_page_loads_and_discoverys_references_have_its_cases(page, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    (tmp_path / "cluster.py").write_text(code)
    configuration = site.load(tmp_path / "cluster.py")
    (system,) = configuration["systems"]
    expected = matrix(configuration, system["name"], all_functions=True)
    (tmp_path / "cluster.yaml").write_text(discover.references_text(system["name"]))
    references = ReferenceFile(tmp_path / "cluster.yaml")
    assert jobs(expected)
    for case in expected.cases:
        assert references.find(registry.check_name(case.benchmark, case.function), case)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_fabric_says_what_was_not_tried(page):
    assert page == "air-gapped" or "**Not tried**" in (DOCS / f"{page}.md").read_text()
