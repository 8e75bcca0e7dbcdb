#!/bin/bash
# both.sh COMMAND...: two tasks of one node, as srun would start them.
for SLURM_PROCID in 0 1; do
    export SLURM_PROCID SLURM_LOCALID=$SLURM_PROCID
    bash ./rank.sh "$@" &
done
wait
