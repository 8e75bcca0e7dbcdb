"""Histories: what each case measured night after night, and what changed in it."""
