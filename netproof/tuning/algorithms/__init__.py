"""Algorithms of collectives that each MPI library offers."""
