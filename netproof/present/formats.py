"""Formats in which a session can be written; importing it costs nothing."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """Formats in which a session can be written."""

    CSV = "csv"
    JSON = "json"
    NETPIPE = "netpipe"
