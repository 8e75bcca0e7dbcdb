#!/bin/bash
. ./steps.sh
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
step Barrier.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -iter 60,1 Barrier
step Alltoall.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-1.txt -iter 60,1 Alltoall
step Reduce_scatter.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-4.txt -iter 60,1 Reduce_scatter
step Bcast.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-1.txt -iter 60,1 Bcast
step Allreduce.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-4.txt -iter 60,1 Allreduce
step PingPong.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-1.txt -iter 60,1 PingPong
step Sendrecv.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-1.txt -iter 60,1 Sendrecv
step Allgather.1 6 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh IMB-MPI1 -npmin 2 -msglen sizes-from-1.txt -iter 60,1 Allgather
