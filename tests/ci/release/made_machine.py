"""Output of programs on a machine with Debian 12."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What apt-get of Debian 12 lists, with other addresses, and an archive that is not Debian's.
TARGETS = """\
bookworm main Debian http://mirror.example/debian/
bookworm-updates main Debian http://mirror.example/debian/
bookworm-security main Debian http://mirror.example/debian-security/
nodistro main . https://other.example/node/
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root")
