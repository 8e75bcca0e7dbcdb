# shellcheck shell=bash
# Sourced by the job script of a sweep of algorithms, after steps.sh.

# Subjects of which a launch failed: what crashes or hangs once would take the time of the others.
declare -A failing=()

# try NAME LIMIT COMMAND...: as `step`, unless an earlier launch of its subject failed.
try() {
    [ -z "${failing[${1%.*}]:-}" ] || return 0
    step "$@"
    [ "$(tail -n 1 launches.tsv | cut -f 4)" = 0 ] || failing[${1%.*}]=1
}
