"""README and docs name files, commands and variables that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from docs import from_code
from netproof.benchmarks import registry
from netproof.commands.cli import app
from netproof.measurement import twin
from netproof.measurement.landmarks import LANDMARKS
from netproof.site import discover, site
from netproof.site.matrix import jobs, matrix
from netproof.site.partition import ENVIRONMENT_KEYS, PARTITION_KEYS
from netproof.verdict.references import ReferenceFile

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("*/*.md")])
TEXT = {page: page.read_text() for page in PAGES}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def code(page: Path) -> str:
    """The page's code: between backquotes and on indented lines."""
    text = TEXT[page]
    return "\n".join([*re.findall(r"`([^`\n]+)`", text), *re.findall(r"(?m)^ {4,}\S.*$", text)])


def table(page: str, heading: str) -> list[list[str]]:
    """Cells of the first table after a heading, without its head."""
    section = TEXT[ROOT / page].split(f"\n{heading}\n", 1)[1]
    rows = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def anchors(page: Path) -> set[str]:
    """Fragments that a page's headings can be linked by."""
    headings = re.findall(r"(?m)^#+ (.+)$", from_code.on_page_markdown(page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT[page]):
        if re.match(r"https?:", target):
            continue
        name, _, fragment = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert not fragment or fragment in anchors(there), target


@each_page
def test_every_path_of_the_project_that_is_named_exists(page):
    folders = "checks|ci|docs|netproof|reference-values|site-config|tests"
    for path in re.findall(rf"(?<![\w/.-])(?:{folders})/[\w./-]*", code(page)):
        # What a reader is to create.
        if "mycluster" not in path:
            assert (ROOT / path).exists(), path


@each_page
def test_every_netproof_command_and_its_options_exist(page):
    commands = get_command(app).commands
    for name, arguments in re.findall(r"(?m)^ *netproof ([a-z]+)\b(.*)$", code(page)):
        assert name in commands, name
        command = commands[name]
        if hasattr(command, "commands"):
            below = next(iter(arguments.split()), "")
            if name == "history" and below not in command.commands:
                below = "show"
            assert below in command.commands, f"netproof {name} {below}"
            command = command.commands[below]
        options = {option for parameter in command.params for option in parameter.opts}
        for option in re.findall(r"--[a-z-]+", arguments.partition(" #")[0]):
            assert option in options, f"netproof {name} {option}"


def test_method_has_the_performance_variables_that_the_checks_have():
    described = {
        name.strip("`"): unit
        for name, unit, _ in table("docs/method.md", "## Performance variables")
    }
    landmarks = {name: one.unit for name, one in LANDMARKS.items()}
    assert described == landmarks | dict.fromkeys(twin.VARIABLES, "%") | {"time_us_<bytes>": "us"}


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("## Extras of a partition", PARTITION_KEYS),
        ("## Extras of an environment", ENVIRONMENT_KEYS),
    ],
)
def test_the_reference_has_every_key(heading, keys):
    described = {
        name
        for row in table("docs/reference/keys.md", heading)
        for name in re.findall(r"`(\w+)`", row[0])
    }
    assert described == set(keys)


def test_every_page_is_in_the_index_and_in_the_site():
    index = DOCS / "README.md"
    linked = {
        (index.parent / name).resolve() for name in re.findall(r"\]\(([^)#\s]+)", TEXT[index])
    }
    pages = {page for page in PAGES if page.is_relative_to(DOCS)}
    assert pages - {index} <= linked
    in_site = re.findall(r"(?m)^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text())
    assert {DOCS / name for name in in_site} == pages
    assert "](docs/README.md)" in TEXT[ROOT / "README.md"]


def test_every_command_is_in_the_table_of_commands():
    described = TEXT[DOCS / "reference" / "commands.md"]
    for name, command in get_command(app).commands.items():
        verbs = (
            [f"{name} {below}" for below in command.commands]
            if hasattr(command, "commands")
            else [name]
        )
        for verb in verbs:
            # History without a word shows.
            shown = verb.removesuffix(" show") if name == "history" else verb
            assert f"`netproof {shown}`" in described, verb


def test_pages_for_users_are_short():
    validation = DOCS / "validation"
    users = [page for page in PAGES if page.is_relative_to(DOCS) and page.parent != validation]
    words = {page.relative_to(DOCS): len(re.findall(r"\S*\w\S*", TEXT[page])) for page in users}
    assert sum(words.values()) <= 30_000
    for page, count in words.items():
        assert count <= 1_500 or page.parent.name == "reference", page


def test_readme_and_the_steps_of_a_benchmark_are_short_and_figures_have_their_validation():
    assert len(TEXT[ROOT / "README.md"].splitlines()) <= 100
    section = TEXT[ROOT / "CONTRIBUTING.md"].split("## Adding a benchmark\n", 1)[1]
    assert 0 < len(section.split("\n## ", 1)[0].strip().splitlines()) <= 10
    names = ("diagnose", "history", "tune", "load", "pairs", "judge", "store", "power", "spack")
    for name in names:
        assert "](validation/" in TEXT[DOCS / f"{name}.md"], name


FABRICS = ("infiniband", "roce", "slingshot", "gpu-nodes", "air-gapped")
"""Pages with a whole site."""


@pytest.mark.parametrize("page", FABRICS)
def test_the_site_of_a_page_loads_and_discoverys_references_have_its_cases(page, tmp_path):
    assert page == "air-gapped" or "**Not tried**" in TEXT[DOCS / f"{page}.md"]
    (code,) = re.findall(r"```python\n(.*?)```", TEXT[DOCS / f"{page}.md"], re.DOTALL)
    (tmp_path / "cluster.py").write_text(code)
    configuration = site.load(tmp_path / "cluster.py")
    (system,) = configuration["systems"]
    expected = matrix(configuration, system["name"], all_functions=True)
    (tmp_path / "cluster.yaml").write_text(discover.references_text(system["name"]))
    references = ReferenceFile(tmp_path / "cluster.yaml")
    assert jobs(expected)
    for case in expected.cases:
        assert references.find(registry.check_name(case.benchmark, case.function), case)
