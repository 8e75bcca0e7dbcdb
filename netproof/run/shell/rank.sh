#!/bin/bash
# rank.sh COMMAND...: runs one rank and says on standard error where it ran, what CPU it took, how
# it was scheduled, and, once on each node, what else the node did meanwhile.
. ./load.sh
node=$(uname -n)
# In TIMEFORMAT a % begins a figure.
TIMEFORMAT="netproof rank ${SLURM_PROCID:?} on ${node//%/%%}: %R s wall, %U s user, %S s system"
scheduled=
# A shell watches its program itself.
if [ "$1" = bash ]; then run=("$@"); else run=(watched "$@"); fi
[ "${SLURM_LOCALID:?}" -ne 0 ] || load_before
time "${run[@]}"
status=$?
[ -z "$scheduled" ] || echo "$scheduled" >&2
[ "$SLURM_LOCALID" -ne 0 ] || load_after "$node"
exit "$status"
