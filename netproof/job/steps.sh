# shellcheck shell=bash
# Sourced by the job script. Each launch of a benchmark is a job step with files of its own; what
# one of them does, crash or hang, leaves the others standing.

printf 'step\tstart\tend\tstatus\tlimit_s\n' >launches.tsv

# Ends every job step but the script's own. srun may be gone while its tasks are not.
end_steps() {
    local id
    for id in $(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i); do
        case $id in
        *.batch | *.extern | *.interactive) ;;
        *) scancel --signal=KILL "$id" ;;
        esac
    done
}

# step NAME LIMIT COMMAND...: one launch, ended after LIMIT seconds.
step() {
    local name=$1 limit=$2 start end status
    shift 2
    start=$EPOCHREALTIME
    timeout --signal=TERM --kill-after=5 "$limit" "$@" >"$name.out" 2>"$name.err" </dev/null
    status=$?
    end=$EPOCHREALTIME
    [ "$status" -eq 0 ] || end_steps
    printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$start" "$end" "$status" "$limit" >>launches.tsv
}

# wanted LABEL: whether what the label stands for is still to be launched.
wanted() {
    ! grep -qxF -- "$1" closed.txt 2>/dev/null
}

# decide COMMAND...: closes what is decided. A node that cannot tell makes every round.
decide() {
    "$@" >>decide.out 2>&1 </dev/null || true
}

# job_nodes FILE: sets the array nodes to the job's own, by Slurm's names, and notes them in FILE.
job_nodes() {
    local listed
    nodes=()
    listed=$(scontrol show hostnames "$SLURM_JOB_NODELIST") && mapfile -t nodes <<<"$listed"
    printf 'netproof-job-nodes\t1\njobid\t%s\ncount\t%s\n' "$SLURM_JOB_ID" "$SLURM_JOB_NUM_NODES" >"$1"
    [ -n "$listed" ] || return 1
    printf 'node\t%s\n' "${nodes[@]}" >>"$1"
    printf 'end\n' >>"$1"
}

trap end_steps EXIT
