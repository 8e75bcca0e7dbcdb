"""A session: what jobs run, what came of them, where it came from, and what was deferred."""
