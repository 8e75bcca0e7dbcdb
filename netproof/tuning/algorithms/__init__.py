"""Which algorithms of a collective each MPI library lets one choose: a file for each library."""
