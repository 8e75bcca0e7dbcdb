"""The command ci/progress, by which ci/quickstart starts ReFrame."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from ci.progress.command import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
