#!/bin/bash
# rank.sh COMMAND...: runs one rank and says on standard error where it ran and what CPU it took.
node=$(uname -n)
# In TIMEFORMAT a % begins a figure.
TIMEFORMAT="netproof rank ${SLURM_PROCID:?} on ${node//%/%%}: %R s wall, %U s user, %S s system"
time "$@"
