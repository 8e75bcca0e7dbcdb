#!/bin/bash
# The two ends of NetPIPE over TCP as the two tasks of one job step, so that both end with it.
#
#   nptcp.sh listen-on INTERFACE COUNT        prints "listening ADDRESS PORT..." with COUNT free ports
#   nptcp.sh run ADDRESS PORT ARGUMENTS...    task 0 receives at ADDRESS, task 1 sends to it
set -u
. ./load.sh

listen_on() {
    local interface=$1 count=$2 address port
    address=$(ip -4 -o address show dev "$interface" scope global | awk '{print $4; exit}')
    if [ -z "$address" ]; then
        echo "nptcp.sh: $SLURMD_NODENAME has no IPv4 address on interface $interface" >&2
        exit 3
    fi
    printf 'listening %s' "${address%/*}"
    while [ "$count" -gt 0 ]; do
        port=$((RANDOM % 20000 + 10000))
        if [ -z "$(ss --tcp --all --no-header --numeric "sport = :$port")" ]; then
            printf ' %s' "$port"
            count=$((count - 1))
        fi
    done
    printf '\n'
}

# Seconds in which a sender has to be connected; without an answer the kernel tries for minutes.
CONNECT_S=20
# As sysexits.h has it: the host is not there.
NO_HOST=68

# insist_on_answer ADDRESS PORT FILE: ends a sender that has no figure in FILE after so long and is still
# waiting for a connection, and reports it first. It does not look earlier: listing connections takes
# the kernel some ms, in which the sender's rate drops.
insist_on_answer() {
    local address=$1 port=$2 file=$3 remote line asking never
    local -a parts words lines
    IFS=. read -r -a parts <<<"$address"
    printf -v remote '%02X%02X%02X%02X:%04X' "${parts[3]}" "${parts[2]}" "${parts[1]}" "${parts[0]}" "$port"
    # A sleep program would be left behind when this is ended.
    exec {never}<> <(:)
    read -r -t "$CONNECT_S" -u "$never"
    # A refused sender asks again and again; only one that asks in two looks waits for an answer.
    for _ in 1 2; do
        [ ! -s "$file" ] || return 0
        asking=
        # Read as a whole: line by line, the kernel would walk its table each time.
        mapfile -t lines </proc/net/tcp
        for line in "${lines[@]}"; do
            read -r -a words <<<"$line"
            # 02 is SYN_SENT: a connection requested and not answered.
            [ "${words[2]-} ${words[3]-}" != "$remote 02" ] || asking=1
        done
        [ -n "$asking" ] || return 0
        read -r -t 0.1 -u "$never"
    done
    echo "no answer"
    for file in /proc/[0-9]*/cmdline; do
        mapfile -d '' -t words <"$file"
        if [ "${words[0]-}" = NPtcp ] && [[ " ${words[*]} " == *" -h $address -P $port "* ]]; then
            file=${file#/proc/}
            kill -TERM "${file%/cmdline}"
        fi
    done
}

# The receiver may start after the sender: NPtcp exits with 246 for a refused connection, and is
# retried for 20 seconds.
send_to() {
    local address=$1 port=$2 tries=0 status said insists file= before= word
    shift 2
    for word in "$@"; do
        [ "$before" != -o ] || file=$word
        before=$word
    done
    exec {said}< <(insist_on_answer "$address" "$port" "$file" 2>/dev/null)
    insists=$!
    while :; do
        watched NPtcp -h "$address" -P "$port" "$@"
        status=$?
        if [ "$status" -ne 246 ] || [ "$tries" -ge 200 ]; then
            break
        fi
        tries=$((tries + 1))
        sleep 0.1
    done
    if [ "$status" -gt 128 ] && read -r -t 1 <&"$said"; then
        echo "nptcp.sh: $SLURMD_NODENAME had no answer from $address in $CONNECT_S s" >&2
        status=$NO_HOST
    fi
    exec {said}<&-
    # It still waits if a connection came and went unseen.
    kill "$insists" 2>/dev/null
    return "$status"
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
