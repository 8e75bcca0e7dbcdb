"""The command ci/diagnose-campaign."""

from __future__ import annotations

import sys

from ci.diagnose_campaign.command import main

sys.exit(main(sys.argv[1:]))
