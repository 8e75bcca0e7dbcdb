"""Sessions, partitions and environments compared with one another."""
