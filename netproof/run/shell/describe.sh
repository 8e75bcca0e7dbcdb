#!/bin/bash
# describe.sh LIMIT_S INTERFACE PROGRAM...: describes every node of the job (node.sh), then tests the
# paths to its neighbours (path.sh). Each of the two ends after LIMIT_S seconds; the reader of the
# files reports what is missing. Runs on the job's first node.
# describe.sh LIMIT_S INTERFACE --pairs FILE...: tests the paths again, and those between the two nodes
# of each pair in the files, which have a node a line.
set -uf
export LC_ALL=C
limit=$1 interface=$2
shift 2

everywhere() {
    timeout --signal=TERM --kill-after=5 "$limit" srun --mpi=none --nodes="$SLURM_JOB_NUM_NODES" \
        --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"
}

pairs=()
if [ "${1-}" = --pairs ]; then
    for file in "${@:2}"; do
        mapfile -t -O "${#pairs[@]}" pairs <"$file"
    done
else
    from=$EPOCHREALTIME
    everywhere --output=node.%N.txt --error=node.%N.err bash ./node.sh "$interface" "$@"
    # Every node has read its clock between these two moments of this node's clock.
    printf 'netproof-clock\t1\nfrom\t%s\nto\t%s\nend\n' "$from" "$EPOCHREALTIME" >clock.txt
fi

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

declare -A partners=()
for ((i = 0; i + 1 < ${#pairs[@]}; i += 2)); do
    one=${pairs[i]} other=${pairs[i + 1]}
    partners[$one]+=$'\t'$other$'\t'${addresses[$other]:--}
    partners[$other]+=$'\t'$one$'\t'${addresses[$one]:--}
done

: >ring.txt
[ "${#nodes[@]}" -gt 1 ] || exit 0
for ((i = 0; i < ${#nodes[@]}; i++)); do
    next=${nodes[(i + 1) % ${#nodes[@]}]}
    previous=${nodes[i - 1]}
    # An unknown address has a sign, since bash takes two tabs for one.
    printf '%s\t%s\t%s\t%s\t%s%s\n' "${nodes[i]}" "$next" "${addresses[$next]:--}" \
        "$previous" "${addresses[$previous]:--}" "${partners[${nodes[i]}]-}" >>ring.txt
done
everywhere --output=path.%N.txt --error=path.%N.err bash ./path.sh "$interface"
exit 0
