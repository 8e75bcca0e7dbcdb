#!/bin/bash
. ./steps.sh
export netproof_job_script=$PPID
crash_retries=3
figures_np='^ *[0-9]+ +[0-9]+\.[0-9]+ '
figures_out='^ +[0-9]+ +[0-9]+(\.[0-9]+)?( |$)'
job_nodes job_nodes.txt || exit 3
bash ./describe.sh 60 eth1 NPtcp NPmpi IMB-MPI1
for ((launch = 1; launch <= 77; launch++)); do
    decide /srv/netproof/.venv/bin/python3 -m netproof.run.pair_deciding /srv/run/stage/2026-11-22T08-57-16/testbed/fast-ethernet/mpich/PairJob $((launch - 1))
    wanted pairs || break
    [ -s next.txt ] || exit 4
    mv next.txt pairs.$launch.nodes
    ranks=$(wc -l <pairs.$launch.nodes)
    # A single pair is no group among several.
    if [ "$ranks" -gt 2 ]; then multi="-multi 1"; else multi=; fi
    export SLURM_HOSTFILE=$PWD/pairs.$launch.nodes
    step pairs.$launch 180 srun --mpi=pmi2 --distribution=arbitrary --nodes=$ranks --ntasks=$ranks --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 $multi -npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPong
    unset SLURM_HOSTFILE
done
