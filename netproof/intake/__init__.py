"""External input: read within limits, of the right kind, from trusted places."""
