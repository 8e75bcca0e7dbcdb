"""The command ci/missed-faults."""

from __future__ import annotations

import sys

from ci.missed_faults.command import main

sys.exit(main(sys.argv[1:]))
