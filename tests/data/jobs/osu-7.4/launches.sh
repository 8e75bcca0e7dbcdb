#!/bin/bash
. ./steps.sh
export netproof_job_script=$PPID
export netproof_rails=eth1
export netproof_driver_counters=0
crash_retries=3
first_figure_s=60
figures_np='^ *[0-9]+ +[0-9]+\.[0-9]+ '
figures_out='^ +[0-9]+ +[0-9]+(\.[0-9]+)?( |$)|^([0-9]+ +[0-9]+\.[0-9]+| +[0-9]+\.[0-9]+)( |$)'
job_nodes job_nodes.txt || exit 3
printf '%s\n' '/srv/netproof/.opt/testbed/pace "$@"' >pace.sh
bash ./describe.sh 60 eth1 NPtcp NPmpi IMB-MPI1 osu_latency osu_bw osu_bibw osu_mbw_mr osu_allreduce osu_alltoall osu_allgather osu_bcast osu_reduce_scatter osu_barrier
step barrier.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_barrier -f -i 5 -x 1
step barrier-twin.1 180 /srv/netproof/ci/testbed/twin gige -2 -b 1048576 -l 1 -u 524288 -p 0 -n 2 -o barrier-twin.1.np
step allgather.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_allgather -m 1:524288 -f -i 5 -x 1
step allgather-twin.1 180 /srv/netproof/ci/testbed/twin gige -2 -b 1048576 -l 1 -u 524288 -p 0 -n 2 -o allgather-twin.1.np
step reduce_scatter.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_reduce_scatter -m 16:524288 -f -i 5 -x 1
step reduce_scatter-twin.1 180 /srv/netproof/ci/testbed/twin gige -2 -b 1048576 -l 1 -u 524288 -p 0 -n 2 -o reduce_scatter-twin.1.np
step alltoall.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_alltoall -m 1:524288 -f -i 5 -x 1
step alltoall-twin.1 180 /srv/netproof/ci/testbed/twin gige -2 -b 1048576 -l 1 -u 524288 -p 0 -n 2 -o alltoall-twin.1.np
step bcast.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_bcast -m 1:524288 -f -i 5 -x 1
step bcast-twin.1 180 /srv/netproof/ci/testbed/twin gige -l 1 -u 524288 -p 0 -n 2 -o bcast-twin.1.np
step allreduce.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_allreduce -m 4:524288 -f -i 5 -x 1
step allreduce-twin.1 180 /srv/netproof/ci/testbed/twin gige -2 -b 1048576 -l 1 -u 524288 -p 0 -n 2 -o allreduce-twin.1.np
step mbw_mr.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_mbw_mr -m 1:524288 -i 5 -x 1
step mbw_mr-twin.1 180 /srv/netproof/ci/testbed/twin gige -l 1 -u 524288 -p 0 -n 2 -o mbw_mr-twin.1.np
step start-osu-4x1.1 180 srun --mpi=pmi2 --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 bash ./rank.sh osu_barrier -i 1 -x 0
timeout --signal=TERM --kill-after=5 60 env OMPI_MCA_hook_comm_method_display=mpi_init OMPI_MCA_hook_comm_method_enable_mpi_init=1 OMPI_MCA_btl_base_verbose=1 UCX_LOG_LEVEL=info MPIR_CVAR_DEBUG_SUMMARY=1 I_MPI_DEBUG=4 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 osu_latency -m 1:1 -i 1 -x 0 >transport.out 2>transport.err </dev/null || true
