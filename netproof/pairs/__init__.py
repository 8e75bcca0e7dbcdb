"""Which node, pair or group of a partition is slow, from rounds of disjoint pairs."""
