# shellcheck shell=bash
# Sourced by the job script of a sweep over a setting that a site's hook sets on every node of the job.
#
#   turn_begin RECORD NAME HOOK...   notes each node's own value in RECORD, before any change, and in
#                                    own_values.tsv, which stays
#   turn_to VALUE                    sets it on every node, and reads it back there
#   turn_back                        restores each node's own, reads that back, and removes RECORD
#
# RECORD outlives a killed job: it has a line "node NAME value" for each node that may have another
# value than its own. Restore them before the next sweep begins.

# on_node NODE COMMAND...: runs COMMAND on a node of the job.
on_node() {
    local node=$1
    shift
    srun --mpi=none --nodelist="$node" --nodes=1 --ntasks=1 --ntasks-per-node=1 "$@" </dev/null
}

turn_begin() {
    local node value text=
    turn_record=$1 turn_name=$2
    shift 2
    turn_hook=("$@")
    if [ -e "$turn_record" ]; then
        echo "set_and_restore.sh: $turn_record: an earlier sweep ended before everything was restored" >&2
        return 1
    fi
    declare -gA turn_values=()
    for node in "${nodes[@]}"; do
        value=$(on_node "$node" "${turn_hook[@]}" get "$turn_name") || return 1
        if [[ ! $value =~ ^[^[:space:]]+$ ]]; then
            echo "set_and_restore.sh: $node: '${turn_hook[*]} get $turn_name' said '$value', which is no value" >&2
            return 1
        fi
        turn_values[$node]=$value
        text+="$node"$'\t'"$turn_name"$'\t'"$value"$'\n'
    done
    printf '%s' "$text" >own_values.tsv || return 1
    printf '%s' "$text" >"$turn_record.new" && sync "$turn_record.new" && mv "$turn_record.new" "$turn_record"
}

# turn_node NODE VALUE: sets the value there, and checks it.
turn_node() {
    local said
    # Resetting a card may interrupt its carrier for a moment, which is no fault of the network.
    rm -f "carriers.$1"
    on_node "$1" "${turn_hook[@]}" set "$turn_name" "$2" || return 1
    said=$(on_node "$1" "${turn_hook[@]}" get "$turn_name") || return 1
    if [ "$said" != "$2" ]; then
        echo "set_and_restore.sh: $1: $turn_name was set to $2 and is $said" >&2
        return 1
    fi
}

turn_to() {
    local node
    for node in "${nodes[@]}"; do
        turn_node "$node" "$1" || return 1
    done
}

turn_to_own() {
    local node failed=0
    for node in "${nodes[@]}"; do
        turn_node "$node" "${turn_values[$node]}" || failed=1
    done
    return "$failed"
}

turn_back() {
    turn_to_own && rm -f -- "$turn_record"
}
