#!/bin/bash
# rank.sh COMMAND...: runs one rank and prints on standard error where it ran, its CPU time and its
# scheduling, and, once per node, the node's other load and its network counters. Rank 0 prints a line
# on standard output before its program and one after it.
. ./load.sh
. ./counters.sh
node=${SLURMD_NODENAME:?}
# In TIMEFORMAT a % begins a figure.
TIMEFORMAT="netproof rank ${SLURM_PROCID:?} on ${node//%/%%}: %R s wall, %U s user, %S s system"
scheduled=
# A shell watches its program itself.
if [ "$1" = bash ]; then run=("$@"); else run=(watched "$@"); fi
if [ "${SLURM_LOCALID:?}" -eq 0 ]; then
    pace_begin
    network_before "$node"
    load_before
fi
[ "$SLURM_PROCID" -ne 0 ] || echo "netproof program begins"
time "${run[@]}" 8<&- 9>&-
status=$?
[ "$SLURM_PROCID" -ne 0 ] || echo "netproof program ended"
[ -z "$scheduled" ] || echo "$scheduled" >&2
if [ "$SLURM_LOCALID" -eq 0 ]; then
    load_after "$node"
    network_after "$node" "$status"
    pace_end "$node"
fi
exit "$status"
