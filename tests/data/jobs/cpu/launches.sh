. ./steps.sh
crash_retries=0 figures_np=x figures_out=x
mpich=.opt/mpich/bin
export SLURM_STEP_NUM_NODES=1 netproof_rails=lo netproof_driver_counters=0
port=15700
tcp() { port=$((port + 1)); step "$1" 60 bash both.sh bash ./nptcp.sh run 127.0.0.1 $port "${@:2}"; }
mpi() { step "$1" 60 "$mpich/mpiexec" -n 2 bash -c "export SLURM_PROCID=\$PMI_RANK SLURM_LOCALID=\$PMI_RANK; exec bash ./rank.sh \"\$@\"" _ "$mpich/NPmpi" "${@:2}"; }
for i in 1 2; do
    tcp tcp-intra-node-oneway.$i -l 1 -u 524288 -p 0 -n 10 -o tcp-intra-node-oneway.$i.np
    mpi mpi-intra-node-oneway.$i -l 1 -u 524288 -p 0 -n 100 -o mpi-intra-node-oneway.$i.np
done
for i in 1 2; do tcp start-tcp-2x2.$i -l 1 -u 8 -p 0 -n 1 -o /dev/null; done
for i in 1 2; do mpi start-mpi-2x2.$i -l 1 -u 8 -p 0 -n 1 -o /dev/null; done
trap - EXIT
