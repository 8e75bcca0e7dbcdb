#!/bin/bash
# The two ends of NetPIPE over TCP as the two tasks of one job step, so that both end with it.
#
#   nptcp.sh listen-on INTERFACE COUNT        prints this node's address and COUNT free ports
#   nptcp.sh run ADDRESS PORT ARGUMENTS...    task 0 receives at ADDRESS, task 1 sends to it
set -u
. ./load.sh

listen_on() {
    local interface=$1 count=$2 address port
    address=$(ip -4 -o address show dev "$interface" scope global | awk '{print $4; exit}')
    if [ -z "$address" ]; then
        echo "nptcp.sh: $(uname -n) has no IPv4 address on interface $interface" >&2
        exit 3
    fi
    printf '%s' "${address%/*}"
    while [ "$count" -gt 0 ]; do
        port=$((RANDOM % 20000 + 10000))
        if [ -z "$(ss --tcp --all --no-header --numeric "sport = :$port")" ]; then
            printf ' %s' "$port"
            count=$((count - 1))
        fi
    done
    printf '\n'
}

# The receiver may come up after the sender: NPtcp's exit status for a refused connection is 246,
# and it is tried again for 20 seconds.
send_to() {
    local address=$1 port=$2 tries=0 status
    shift 2
    while :; do
        watched NPtcp -h "$address" -P "$port" "$@"
        status=$?
        if [ "$status" -ne 246 ] || [ "$tries" -ge 200 ]; then
            return "$status"
        fi
        tries=$((tries + 1))
        sleep 0.1
    done
}

command=$1
shift
case $command in
listen-on) listen_on "$@" ;;
run)
    address=$1 port=$2
    shift 2
    if [ "$SLURM_PROCID" -eq 0 ]; then
        watched NPtcp -P "$port" "$@" >/dev/null
    else
        send_to "$address" "$port" "$@"
    fi
    status=$?
    echo "$scheduled" >&2
    exit "$status"
    ;;
esac
