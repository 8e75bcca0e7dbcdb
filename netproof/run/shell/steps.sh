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

# Subjects of which a launch crashed in every attempt: their later launches have one.
declare -A hopeless=()

# has_figures NAME: whether the launch came to its first row, by the patterns of the job script.
has_figures() {
    grep -aEqs -e "$figures_np" "$1.np" || grep -aEqs -e "$figures_out" "$1.out"
}

# crashed NAME STATUS START END LIMIT: it ended by itself, and not well, before its first figure. A
# program that is not there (126, 127), or whose other end does not answer, has not begun.
crashed() {
    case $2 in
    0 | 126 | 127) return 1 ;;
    124 | 137) [ $((${4%[.,]*} - ${3%[.,]*})) -lt "$5" ] || return 1 ;;
    esac
    ! has_figures "$1" && ! grep -aqs '^nptcp.sh: .* had no answer from' "$1.err"
}

# step NAME LIMIT COMMAND...: one launch, ended after LIMIT seconds. One that crashes is launched
# again, up to $crash_retries times; NAME~1, NAME~2, … have the files and lines of what crashed.
step() {
    local name=$1 limit=$2 attempt kind start end status as i
    shift 2
    local command=("$@")
    for ((attempt = 1; ; attempt++)); do
        start=$EPOCHREALTIME
        timeout --signal=TERM --kill-after=5 "$limit" "${command[@]}" >"$name.out" 2>"$name.err" </dev/null
        status=$?
        end=$EPOCHREALTIME
        [ "$status" -eq 0 ] || end_steps
        as=$name
        if [ "$crash_retries" -gt 0 ] && crashed "$name" "$status" "$start" "$end" "$limit"; then
            if [ "$attempt" -gt "$crash_retries" ]; then
                hopeless[${name%.*}]=1
            elif [ -z "${hopeless[${name%.*}]:-}" ]; then
                as=$name~$attempt
            fi
        fi
        printf '%s\t%s\t%s\t%s\t%s\n' "$as" "$start" "$end" "$status" "$limit" >>launches.tsv
        [ "$as" != "$name" ] || return 0
        for kind in out err np; do
            [ ! -e "$name.$kind" ] || mv "$name.$kind" "$as.$kind"
        done
        # The port behind the address may still be held by what crashed.
        for ((i = 0; i + 1 < ${#command[@]}; i++)); do
            [ "${command[i]}" != "${address:-}" ] || command[i + 1]=$(free_port)
        done
    done
}

# wanted LABEL: whether what the label stands for is still to be launched.
wanted() {
    ! grep -qxF -- "$1" closed.txt 2>/dev/null
}

# decider COMMAND...: starts what answers `decide`, unless it is there. It ends with the script, of
# which it reads.
decider() {
    [ -z "${decider-}" ] || return 0
    coproc deciding {
        exec 2>>decide.out
        exec "$@"
    }
    decider=$deciding_PID
}

# decide WORD: has that close what is decided. A node that cannot tell makes every round; what ends
# without an answer is started again by the next `decider`.
decide() {
    local answer= status lines=()
    # Writing to what has ended would end the script.
    trap : PIPE
    {
        printf '%s\n' "$1" >&"${deciding[1]}"
        read -r answer <&"${deciding[0]}"
    } 2>/dev/null
    trap - PIPE
    [ -z "$answer" ] || return 0
    wait "$decider"
    status=$?
    decider=
    # What it said last is why.
    mapfile -t lines 2>/dev/null <decide.out
    [[ ${#lines[@]} -gt 0 && ${lines[-1]} != *"what decides ended"* ]] || lines=("")
    printf '%s\n' "${lines[-1]:+${lines[-1]}; }what decides ended with status $status" >>decide.out
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
