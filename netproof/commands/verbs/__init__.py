"""The arguments and options of `netproof history`, and the call of what its verbs do.

A verb imports what it does only when it is called, so that help and what is wrong with the
arguments come at once.
"""
