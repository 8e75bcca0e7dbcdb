"""The command ci/tune-campaign."""

from __future__ import annotations

import sys

from ci.tune_campaign.command import main

sys.exit(main(sys.argv[1:]))
