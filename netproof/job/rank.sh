#!/bin/bash
# rank.sh COMMAND...: runs one rank and says on standard error where it ran and what CPU it took.
TIMEFORMAT="netproof rank ${SLURM_PROCID:?} on $(uname -n): %R s wall, %U s user, %S s system"
time "$@"
