"""Files of references that tests write."""

from __future__ import annotations

import pytest

from netproof.verdict.references import ReferenceFile


@pytest.fixture
def file(tmp_path):
    """``file(text)``: a file of references with that text."""

    def of(text: str) -> ReferenceFile:
        path = tmp_path / "testbed.yaml"
        with path.open("w", newline="") as stream:
            stream.write(text)
        return ReferenceFile(path)

    return of
