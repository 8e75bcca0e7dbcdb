"""The command ci/pair-power."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from ci.pair_power.command import main  # noqa: E402

main()
