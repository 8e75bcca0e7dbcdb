#!/bin/bash
. ./steps.sh
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
read -r address rest < <(srun --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist="${nodes[0]}" bash ./nptcp.sh listen-on eth1 8)
[ -n "$address" ] || exit 3
read -ra ports <<<"$rest"
step tcp-inter-node-oneway.1 60 srun --mpi=none --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --nodelist="${nodes[0]},${nodes[1]}" bash ./rank.sh bash ./nptcp.sh run "$address" "${ports[0]}" -p 0 -u 524288 -n 10 -o tcp-inter-node-oneway.1.np
step mpi-inter-node-oneway.1 60 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --nodelist="${nodes[0]},${nodes[1]}" bash ./rank.sh NPmpi -p 0 -u 524288 -n 10 -o mpi-inter-node-oneway.1.np
step tcp-intra-node-bidirectional.1 60 srun --mpi=none --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 --nodelist="${nodes[0]}" bash ./rank.sh bash ./nptcp.sh run "$address" "${ports[2]}" -2 -b 1048576 -p 0 -u 524288 -n 10 -o tcp-intra-node-bidirectional.1.np
step mpi-intra-node-bidirectional.1 60 srun --mpi=pmi2 --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 --nodelist="${nodes[0]}" bash ./rank.sh NPmpi -2 -a -p 0 -u 524288 -n 10 -o mpi-intra-node-bidirectional.1.np
step tcp-inter-node-bidirectional.1 60 srun --mpi=none --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --nodelist="${nodes[0]},${nodes[1]}" bash ./rank.sh bash ./nptcp.sh run "$address" "${ports[4]}" -2 -b 1048576 -p 0 -u 524288 -n 10 -o tcp-inter-node-bidirectional.1.np
step mpi-inter-node-bidirectional.1 60 srun --mpi=pmi2 --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --nodelist="${nodes[0]},${nodes[1]}" bash ./rank.sh NPmpi -2 -a -p 0 -u 524288 -n 10 -o mpi-inter-node-bidirectional.1.np
step tcp-intra-node-oneway.1 60 srun --mpi=none --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 --nodelist="${nodes[0]}" bash ./rank.sh bash ./nptcp.sh run "$address" "${ports[6]}" -p 0 -u 524288 -n 10 -o tcp-intra-node-oneway.1.np
step mpi-intra-node-oneway.1 60 srun --mpi=pmi2 --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 --nodelist="${nodes[0]}" bash ./rank.sh NPmpi -p 0 -u 524288 -n 10 -o mpi-intra-node-oneway.1.np
