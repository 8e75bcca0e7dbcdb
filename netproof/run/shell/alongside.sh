# shellcheck shell=bash
# Sourced by the job script of a load test: an aggressor that runs as a job step of its own, from
# before a victim's step begins until after it has ended.

printf 'step\tbegan\tended\trows\twhy\n' >aggressors.tsv

# rows NAME: how many rows of figures the step has printed.
rows() {
    grep -aEc -e "$figures_out" "$1.out"
}

running() {
    kill -0 "$aggressor_pid" 2>/dev/null
}

end_aggressor_step() {
    end_steps
    kill "$aggressor_pid" 2>/dev/null
    # Its status shows nothing, since it was ended.
    wait "$aggressor_pid" || :
}

# begin_aggressor NAME LIMIT COMMAND...: starts it, and returns once it has printed a row, so it sends.
# One that ends before that is restarted, up to $crash_retries times.
begin_aggressor() {
    local limit=$2 attempt until_s ended
    aggressor=$1 aggressor_why='' aggressor_began=
    shift 2
    for ((attempt = 0; attempt <= crash_retries; attempt++)); do
        timeout --signal=TERM --kill-after=5 $((3 * limit)) "$@" >"$aggressor.out" 2>"$aggressor.err" </dev/null &
        aggressor_pid=$!
        until_s=$((SECONDS + limit))
        aggressor_why="it sent nothing within $limit s"
        while [ "$SECONDS" -lt "$until_s" ]; do
            # Checked before its rows: once it has ended it prints no more.
            ended=
            running || ended=1
            if has_figures "$aggressor"; then
                aggressor_began=$EPOCHREALTIME aggressor_why=''
                return 0
            fi
            [ -z "$ended" ] || { aggressor_why='it ended before it sent anything' && break; }
            sleep 0.1
        done
        end_aggressor_step
    done
    return 1
}

# end_aggressor LIMIT: ends it after one more row, so that it sent until now, and notes when it ran,
# how many rows it printed, and why it did not run throughout.
end_aggressor() {
    local until_s=$((SECONDS + $1)) before count=0 ended
    before=$(rows "$aggressor")
    while [ -z "$aggressor_why" ]; do
        ended=
        running || ended=1
        count=$(rows "$aggressor")
        [ "$count" -eq "$before" ] || break
        if [ -n "$ended" ]; then
            aggressor_why='it ended before the victim did'
        elif [ "$SECONDS" -ge "$until_s" ]; then
            aggressor_why="it sent nothing for $1 s"
        fi
        sleep 0.1
    done
    printf '%s\t%s\t%s\t%s\t%s\n' "$aggressor" "${aggressor_began:-$EPOCHREALTIME}" "$EPOCHREALTIME" "$count" "$aggressor_why" >>aggressors.tsv
    end_aggressor_step
}
