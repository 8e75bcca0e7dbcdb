"""What comes from outside: read within limits, of the right kind, from trusted places."""
