#!/bin/bash
. ./steps.sh
export netproof_job_script=$PPID
crash_retries=3
figures_np='^ *[0-9]+ +[0-9]+\.[0-9]+ '
figures_out='^ +[0-9]+ +[0-9]+(\.[0-9]+)?( |$)|^([0-9]+ +[0-9]+\.[0-9]+| +[0-9]+\.[0-9]+)( |$)'
job_nodes job_nodes.txt || exit 3
timeout --signal=TERM --kill-after=5 60 srun --mpi=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --output=node.%N.txt --error=node.%N.err bash ./node.sh eth1 NPtcp NPmpi IMB-MPI1 osu_latency osu_bw osu_bibw osu_mbw_mr osu_allreduce osu_alltoall osu_allgather osu_bcast osu_reduce_scatter osu_barrier
step alltoall.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_alltoall -m 1:524288 -f -i 5 -x 1
step barrier.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_barrier -f -i 5 -x 1
step allgather.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_allgather -m 1:524288 -f -i 5 -x 1
step bibw.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_bibw -m 1:524288 -i 5 -x 1
step bw.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_bw -m 1:524288 -i 5 -x 1
step allreduce.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_allreduce -m 4:524288 -f -i 5 -x 1
step latency.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_latency -m 1:524288 -i 5 -x 1
step reduce_scatter.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_reduce_scatter -m 4:524288 -f -i 5 -x 1
step mbw_mr.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_mbw_mr -m 1:524288 -i 5 -x 1
step bcast.1 180 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_bcast -m 1:524288 -f -i 5 -x 1
