"""Measuring, judging and reporting cluster interconnects for MPI."""
