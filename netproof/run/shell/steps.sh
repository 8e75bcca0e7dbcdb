# shellcheck shell=bash
# Sourced by the job script. Each launch of a benchmark is a job step with its own files; one that
# crashes or hangs does not affect the others.

# set_aside: moves the files of an earlier try of this job, which Slurm requeued, into try-N, and
# records there the state of its nodes in Slurm.
set_aside() {
    local file nodes folder=try-${SLURM_RESTART_COUNT:-0}
    if [ ! -e inputs.txt ]; then
        printf '%s\n' * >.inputs.new
        printf '%s\n' "$SLURM_JOB_NODELIST" >nodelist.txt
        mv .inputs.new inputs.txt
        return
    fi
    mkdir -p "$folder"
    for file in *; do
        [ "$file" = inputs.txt ] || [ -d "$file" ] || grep -qxF -- "$file" inputs.txt || mv -- "$file" "$folder"
    done
    printf '%s\n' "$SLURM_JOB_NODELIST" >nodelist.txt
    nodes=$(cat "$folder/nodelist.txt")
    [ -z "$nodes" ] || sinfo --noheader --Node --nodes="$nodes" --format='%N|%T|%E' | sort -u >"$folder/nodes.txt"
}

set_aside
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

# Subjects with a launch that crashed in every attempt: their later launches have one attempt.
declare -A hopeless=()

# Subjects with a launch that was ended without a figure, to its name: they are not launched again.
declare -A silent=()

# Set once any launch has a figure. Without one, all wait for something that does not answer.
seen=

# has_figures NAME: checks whether the launch has its first row, by the patterns of the job script.
has_figures() {
    grep -aEqs -e "$figures_np" "$1.np" || grep -aEqs -e "$figures_out" "$1.out"
}

# crashed NAME STATUS START END LIMIT: checks whether it failed by itself before its first figure. A
# missing program (126, 127) has not begun.
crashed() {
    case $2 in
    0 | 126 | 127) return 1 ;;
    124 | 137) [ $((${4%[.,]*} - ${3%[.,]*})) -lt "$5" ] || return 1 ;;
    esac
    ! has_figures "$1"
}

# insist_on_figures NAME PID: ends a launch that has no figure in time; its status is 1 if it did.
insist_on_figures() {
    local never
    trap 'exit 0' TERM
    # A sleep program would be left behind when this is ended.
    exec {never}<> <(:)
    read -r -t "$first_figure_s" -u "$never"
    ! has_figures "$1" || return 0
    # From here on its status shows what it did.
    trap '' TERM
    echo "steps.sh: $1 had no figure in $first_figure_s s (the partition's first_figure_s) and was ended" >>"$1.err"
    kill -TERM "$2"
    return 1
}

# launched NAME LIMIT COMMAND...: makes one attempt and sets status; fails if it waited in vain for its
# other end.
launched() {
    local name=$1 limit=$2 pid insists=
    shift 2
    # Appended, since insist_on_figures writes into it too.
    : >"$name.err"
    timeout --signal=TERM --kill-after=5 "$limit" "$@" >"$name.out" 2>>"$name.err" </dev/null &
    pid=$!
    if [ "$first_figure_s" -gt 0 ] && [ "$first_figure_s" -lt "$limit" ]; then
        insist_on_figures "$name" "$pid" &
        insists=$!
    fi
    wait "$pid"
    status=$?
    if [ -n "$insists" ]; then
        kill -TERM "$insists" 2>/dev/null
        wait "$insists" 2>/dev/null
        # With any other status it had nothing to do yet.
        if [ $? -eq 1 ]; then
            [ "$status" -ne 0 ] || status=124
            return 1
        fi
    fi
    ! grep -aqs '^nptcp.sh: .* had no answer from' "$name.err"
}

# As sysexits.h has it: not available.
NOT_LAUNCHED=69

# in_vain NAME: prints why it is not launched, or fails if it is.
in_vain() {
    local before=${silent[${1%.*}]:-}
    if [ -n "$before" ]; then
        echo "steps.sh: $1 was not launched, since $before had no figure"
    elif [ -z "$seen" ] && [ "${#silent[@]}" -ge 2 ]; then
        echo "steps.sh: $1 was not launched, since no launch before it had a figure: see ${silent[*]}"
    else
        return 1
    fi
}

# step NAME LIMIT COMMAND...: makes one launch, ended after LIMIT seconds. One that crashes is launched
# again, up to $crash_retries times; NAME~1, NAME~2, … have the files and lines of the crashes.
step() {
    local name=$1 limit=$2 attempt kind start end status as i
    shift 2
    local command=("$@")
    if in_vain "$name" >"$name.err"; then
        start=$EPOCHREALTIME
        printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$start" "$start" "$NOT_LAUNCHED" "$limit" >>launches.tsv
        return 0
    fi
    for ((attempt = 1; ; attempt++)); do
        start=$EPOCHREALTIME
        launched "$name" "$limit" "${command[@]}" || silent[${name%.*}]=$name
        end=$EPOCHREALTIME
        [ "$status" -eq 0 ] || end_steps
        [ -n "$seen" ] || ! has_figures "$name" || seen=1
        as=$name
        if [ -n "${silent[${name%.*}]:-}" ]; then
            :
        elif [ "$crash_retries" -gt 0 ] && crashed "$name" "$status" "$start" "$end" "$limit"; then
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
            [ "${command[i]}" != "${address:-}" ] || ! listen 1 || command[i + 1]=${listening[1]}
        done
    done
}

# listen COUNT: sets the array listening to an address of the first node and COUNT free ports, as the
# command on_first has nptcp.sh print them, whatever else is printed there.
listen() {
    local printed
    printed=$("${on_first[@]}" "$1")
    if [[ $'\n'$printed$'\n' =~ $'\n'listening' '([0-9.]+(' '[0-9]+)+)$'\n' ]]; then
        read -ra listening <<<"${BASH_REMATCH[1]}"
    else
        echo "steps.sh: ${nodes[0]} printed no address to listen on: ${printed:-nothing}" >&2
        return 1
    fi
}

# wanted LABEL: checks whether the launches of a label are still to be made.
wanted() {
    ! grep -qxF -- "$1" closed.txt 2>/dev/null
}

# decider COMMAND...: starts the process that answers `decide`, unless it runs. It reads from the
# script, and ends with it.
decider() {
    [ -z "${decider-}" ] || return 0
    coproc deciding {
        exec 2>>decide.out
        exec "$@"
    }
    # deciding_PID is gone by now where that ended at once.
    decider=$!
}

# decide WORD: lets that process close decided cases. A node that cannot run it makes every round. If it
# ends without an answer, the next `decider` restarts it.
decide() {
    local answer= status lines=()
    # Writing to a process that has ended would end the script.
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
    # Its last line is the reason.
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
