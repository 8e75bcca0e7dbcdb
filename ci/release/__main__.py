"""The command by which `ci/test` tries another release; it needs only Debian's Python."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from ci.release.command import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
