"""What a session can be written as; importing it costs nothing."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """What a session can be written as."""

    CSV = "csv"
    JSON = "json"
    NETPIPE = "netpipe"
