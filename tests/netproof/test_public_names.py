"""What the rooms offer: a public class has a name of its own in all of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_two_public_classes_have_one_name():
    places = defaultdict(list)
    for path in sorted((ROOT / "netproof").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert len(places) > 250
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
