"""The command ci/store-benchmark."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from ci.store_benchmark.command import main  # noqa: E402

sys.exit(main())
