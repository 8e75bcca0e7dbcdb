"""Attributes of a test in ReFrame's log messages."""

from __future__ import annotations

import reframe as rfm


class Logged(rfm.RegressionTestPlugin):
    """A test whose log messages leave out the attributes that ReFrame deprecated.

    ReFrame reads all attributes for each message. Before it suppresses a deprecation warning, it
    looks up the source of every stack frame, which is most of its work between jobs.
    """

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Return attributes and their names in the log, as ReFrame's metaclass does."""
        deprecated = {name for name, one in cls.var_space.items() if one.is_deprecated()}
        return [one for one in type(cls).loggable_attrs(cls) if one[0] not in deprecated]
