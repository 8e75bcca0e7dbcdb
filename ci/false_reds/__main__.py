"""The command ci/false-reds."""

from __future__ import annotations

import sys

from ci.false_reds.command import main

sys.exit(main(sys.argv[1:]))
