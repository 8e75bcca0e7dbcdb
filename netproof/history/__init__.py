"""Histories: each case's values night after night, and changes in them."""
