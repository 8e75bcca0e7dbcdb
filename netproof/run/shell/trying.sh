# shellcheck shell=bash
# Sourced by the job script of a sweep of algorithms, after steps.sh.

# Subjects with a failed launch, not launched again: a crash or hang would take the others' time.
declare -A failing=()

# try NAME LIMIT COMMAND...: calls `step`, unless an earlier launch of its subject failed.
try() {
    [ -z "${failing[${1%.*}]:-}" ] || return 0
    step "$@"
    [ "$(tail -n 1 launches.tsv | cut -f 4)" = 0 ] || failing[${1%.*}]=1
}
