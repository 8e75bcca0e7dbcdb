"""What ReFrame's log messages tell of a test, and what they leave out."""

from __future__ import annotations

import reframe as rfm


class Logged(rfm.RegressionTestPlugin):
    """A test of which log messages tell every attribute but those that ReFrame deprecated.

    ReFrame reads all of them for each message, and before it suppresses the warning of a deprecated
    one it looks for the source of every frame of the stack: most of what it does between jobs.
    """

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Attribute, and the name that the log has for it, as ReFrame's metaclass gives them."""
        deprecated = {name for name, one in cls.var_space.items() if one.is_deprecated()}
        return [one for one in type(cls).loggable_attrs(cls) if one[0] not in deprecated]
