"""Measurements that are no acceptance: sweeps of a setting, load, single calls, GPCNeT, studies."""
