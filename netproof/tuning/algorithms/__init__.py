"""Algorithms of collectives that each MPI library offers: a file for each library."""
