"""A file for each verb: its arguments and options, and the call of what it does.

A verb imports what it does only when it is called, so that help and what is wrong with the
arguments come at once.
"""
