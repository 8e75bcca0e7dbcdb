#!/bin/bash
# describe.sh LIMIT_S INTERFACE PROGRAM...: describes every node of the job (node.sh), then tests the
# paths to its neighbours (path.sh). Each of the two ends after LIMIT_S seconds; the reader of the
# files reports what is missing. Runs on the job's first node.
set -uf
export LC_ALL=C
limit=$1 interface=$2
shift 2

everywhere() {
    timeout --signal=TERM --kill-after=5 "$limit" srun --mpi=none --nodes="$SLURM_JOB_NUM_NODES" \
        --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"
}

from=$EPOCHREALTIME
everywhere --output=node.%N.txt --error=node.%N.err bash ./node.sh "$interface" "$@"
# Every node has read its clock between these two moments of this node's clock.
printf 'netproof-clock\t1\nfrom\t%s\nto\t%s\nend\n' "$from" "$EPOCHREALTIME" >clock.txt

declare -A addresses=()
set +f
for file in node.*.txt; do
    [ -r "$file" ] || continue
    name=
    while IFS=$'\t' read -r key value; do
        case $key in
        node) name=$value ;;
        address) addresses[${name:-none}]=$value ;;
        esac
    done <"$file"
done
set -f

nodes=()
while IFS=$'\t' read -r key value; do
    [ "$key" != node ] || nodes+=("$value")
done <job_nodes.txt

: >ring.txt
[ "${#nodes[@]}" -gt 1 ] || exit 0
for ((i = 0; i < ${#nodes[@]}; i++)); do
    next=${nodes[(i + 1) % ${#nodes[@]}]}
    previous=${nodes[i - 1]}
    # An unknown address has a sign, since bash takes two tabs for one.
    printf '%s\t%s\t%s\t%s\t%s\n' "${nodes[i]}" "$next" "${addresses[$next]:--}" \
        "$previous" "${addresses[$previous]:--}" >>ring.txt
done
everywhere --output=path.%N.txt --error=path.%N.err bash ./path.sh "$interface"
exit 0
