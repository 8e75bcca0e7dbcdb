# shellcheck shell=bash
# Sourced by rank.sh and nptcp.sh: a node's load beside the benchmark, and how the kernel scheduled a
# rank. Shell builtins only: a compute node may have nothing else, and every started program is itself
# a load. Values that cannot be read are printed with the reason, never as 0.

# counters: reads the node's CPU columns and pressure so far, as fields of load_after's line.
counters() {
    # Some languages have a comma in numbers.
    local label kind columns total moment=${EPOCHREALTIME/,/.}
    read -r label columns 2>/dev/null </proc/stat
    if [ "${label-}" = cpu ]; then
        counted="$moment"$'\t'"${columns//  / }"
    else
        counted="$moment"$'\t'"absent: /proc/stat cannot be read"
    fi
    for kind in some full; do
        total=
        while read -r label _ _ _ columns; do
            [ "$label" != "$kind" ] || total=${columns#total=}
        done 2>/dev/null </proc/pressure/cpu
        counted+=$'\t'${total:-"absent: $kind of /proc/pressure/cpu cannot be read"}
    done
}

load_before() {
    counters
    counted_before=$counted
}

# load_after NODE: prints the counts before and after in one line, whole or missing.
load_after() {
    local machine= cpus=
    counters
    read -r machine 2>/dev/null </proc/sys/kernel/random/boot_id
    read -r cpus 2>/dev/null </sys/devices/system/cpu/online
    printf 'netproof load on %s\t%s\t%s\t%s\t%s\tend\n' "$1" \
        "${machine:-absent: /proc/sys/kernel/random/boot_id cannot be read}" \
        "${cpus:-absent: /sys/devices/system/cpu/online cannot be read}" \
        "$counted_before" "$counted" >&2
}

# Seconds in which the partition's command has to end after its input does.
PACE_ANSWERS_S=5

# pace_begin: starts to watch the distance of the node's CPUs in a launch within one node, by the
# partition's command, which the job wrote into a file.
pace_begin() {
    paced=
    [ -e pace.sh ] && [ "${SLURM_STEP_NUM_NODES:-}" = 1 ] || return 0
    coproc PACE { exec bash ./pace.sh watch 2>&1; }
    # Duplicated, since a shell closes its own when the command ends, even with data unread.
    exec 8<&"${PACE[0]}" 9>&"${PACE[1]}" {PACE[1]}>&-
    paced=1
}

# pace_end NODE: prints a line for each half of the readings, or the reason without them. Programs
# that ran meanwhile must not have had 8 and 9 open.
pace_end() {
    local said= half
    [ -n "$paced" ] || return 0
    exec 9>&-
    IFS= read -r -t "$PACE_ANSWERS_S" -d '' said <&8
    [ "$?" -le 128 ] || said="the command did not end within $PACE_ANSWERS_S s of the end of its input"
    exec 8<&-
    said=${said%$'\n'}
    if [[ $said =~ ^([0-9.]+)\ ([0-9.]+)$ ]]; then
        for half in "${BASH_REMATCH[@]:1}"; do
            printf 'netproof pace on %s\t%s\tend\n' "$1" "$half" >&2
        done
        return
    fi
    said=${said//[[:cntrl:]]/ }
    for half in 1 2; do
        printf 'netproof pace on %s\tabsent: %s\tend\n' "$1" "${said:-the command said nothing}" >&2
    done
}

# state PID: sets $state to the letter of its state; fails if the process does not exist.
state() {
    read -r state 2>/dev/null </proc/"$1"/stat || return
    # The name, in parentheses, may hold anything.
    state=${state##*) }
    state=${state%% *}
}

# watched COMMAND...: runs it and sets $scheduled to a line with its first thread's context switches
# and the ns that it waited for a CPU. They can be read between the end of a process and the moment
# when its parent reaps it. So its parent is a shell that stops itself, and COMMAND begins when it has.
# A pipe that only COMMAND holds open shows when it has ended.
watched() {
    local reports out reaper pid state voluntary= involuntary= waited= key value status killed
    exec {out}>&1
    exec {reports}< <(
        exec {pipe}>&1 1>&"$out" {out}>&-
        reaper=$BASHPID
        {
            while state "$reaper" && [ "$state" != T ]; do :; done
            exec "$@"
        } <&0 &
        echo "$!" >&"$pipe"
        exec {pipe}>&-
        kill -STOP "$reaper"
        wait "$!"
    )
    reaper=$!
    exec {out}>&-
    read -r pid <&"$reports"
    # Processes that COMMAND left behind may still hold the pipe open.
    until read -r -t 2 <&"$reports"; [ "$?" -le 128 ]; do
        state "$pid" && [ "$state" != Z ] || break
    done
    exec {reports}<&-
    while read -r key value; do
        case $key in
        voluntary_ctxt_switches:) voluntary=$value ;;
        nonvoluntary_ctxt_switches:) involuntary=$value ;;
        esac
    done 2>/dev/null </proc/"$pid"/status
    read -r _ waited _ 2>/dev/null </proc/"$pid"/schedstat
    kill -CONT "$reaper" 2>/dev/null
    wait "$reaper"
    status=$?
    if killed=$(kill -l "$status" 2>/dev/null) && [ "$status" -gt 128 ]; then
        echo "$1 was ended by signal $killed" >&2
    fi
    printf -v scheduled 'netproof scheduled %s\t%s\t%s\t%s\tend' "$SLURM_PROCID" \
        "${voluntary:-absent: /proc/PID/status does not tell them}" \
        "${involuntary:-absent: /proc/PID/status does not tell them}" \
        "${waited:-absent: /proc/PID/schedstat is not there}"
    return "$status"
}
