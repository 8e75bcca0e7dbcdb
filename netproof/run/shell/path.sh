#!/bin/bash
# path.sh INTERFACE: tests whether unfragmented packets of the interface's MTU reach the next node of
# ring.txt, and whether that node and the previous one answer a TCP connection. Of further nodes there
# it tests both, and reports the first that packets do not reach. Prints lines as node.sh does.
set -uf
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
interface=$1
headers=28
# Bytes of ping's own packets, headers included.
small=84
# Sign of an unknown address in ring.txt.
unknown=-

# passes BYTES: checks whether one of three packets of this size is answered; sets said to ping's words.
passes() {
    local attempt
    for attempt in 1 2 3; do
        said=$(ping -n -q -M do -c 1 -W 1 -s $(($1 - headers)) -I "$interface" "$address" 2>&1) && return
    done
    return 1
}

# absent KEY REASON: prints the reason; any white space in it becomes one space.
absent() {
    # shellcheck disable=SC2206
    local words=($2)
    printf 'absent.%s\t%s\n' "$1" "${words[*]}"
}

packets() {
    local next=$1 address=$2 mtu
    if ! [[ $link =~ \ mtu\ ([0-9]+) ]]; then
        absent path_passed_bytes "ip link: $link"
        return
    fi
    mtu=${BASH_REMATCH[1]}
    printf 'path_asked_bytes\t%s\n' "$mtu"
    if [ "$address" = "$unknown" ]; then
        absent path_passed_bytes "$next has no IPv4 address on $interface"
    elif [ -z "$(type -P ping)" ]; then
        absent path_passed_bytes "ping is not installed"
    elif passes "$mtu"; then
        printf 'path_passed_bytes\t%s\n' "$mtu"
    elif passes "$small"; then
        printf 'path_passed_bytes\t%s\n' "$small"
    else
        absent path_passed_bytes "ping of $address over $interface: ${said:-no answer}"
    fi
}

# answers ADDRESS: checks whether its kernel takes or refuses a connection to one of two ports, such as
# MPI's ranks listen on; sets said to bash's words. A lost SYN is sent again after 1 s.
answers() {
    local attempt port low=32768 high=60999
    read -r low high </proc/sys/net/ipv4/ip_local_port_range
    for attempt in 1 2; do
        port=$((low + (RANDOM << 15 | RANDOM) % (high - low + 1)))
        # shellcheck disable=SC2016
        said=$(timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$port" 2>&1) && return
        [[ $said != *"Connection refused"* ]] || return 0
    done
    return 1
}

# elsewhere ADDRESS: prints the interface of the route to it, if that is another one.
elsewhere() {
    [[ $(ip -o route get "$1" 2>&1) =~ \ dev\ ([^ ]+) ]] || return
    [ "${BASH_REMATCH[1]}" = "$interface" ] || echo "${BASH_REMATCH[1]}"
}

# connections [NODE ADDRESS]...: prints which of the nodes answer.
connections() {
    local answered='' unanswered='' why='' other
    if ! [[ $link =~ \ mtu\  ]]; then
        why="ip link: $link"
    elif [ -z "$(type -P timeout)" ]; then
        why="timeout is not installed"
    else
        while [ $# -gt 0 ]; do
            if [ "$2" = "$unknown" ]; then
                why+="${why:+, }$1 has no IPv4 address on $interface"
            elif other=$(elsewhere "$2") && [ -n "$other" ]; then
                why+="${why:+, }the way to $2 goes over $other and not over $interface"
            elif answers "$2"; then
                answered+="${answered:+,}$1"
            elif [[ $said == *"No such file or directory"* ]]; then
                why+="${why:+, }bash has no /dev/tcp here"
            else
                unanswered+="${unanswered:+,}$1"
            fi
            shift 2
        done
    fi
    if [ -z "$answered$unanswered" ]; then
        absent tcp_answered "$why"
        absent tcp_unanswered "$why"
    else
        printf 'tcp_answered\t%s\ntcp_unanswered\t%s\n' "${answered:-none}" "${unanswered:-none}"
    fi
}

# in_vain LINES: checks whether packets said there to be sent did not all come through.
in_vain() {
    [[ $1 =~ path_asked_bytes$'\t'([0-9]+) ]] && [[ $1 != *path_passed_bytes$'\t'"${BASH_REMATCH[1]}"* ]]
}

# paths [NODE ADDRESS]...: prints what became of packets to the first node, or to one they do not reach.
paths() {
    local lines first=''
    while [ $# -gt 0 ]; do
        lines=$(printf 'path_to\t%s\n' "$1" && packets "$1" "$2")
        first=${first:-$lines}
        ! in_vain "$lines" || { first=$lines && break; }
        shift 2
    done
    printf '%s\n' "$first"
}

mine=${SLURMD_NODENAME:?}
printf 'netproof-path\t2\nnode\t%s\n' "$mine"
while IFS=$'\t' read -r name next address previous address_before rest; do
    [ "$name" = "$mine" ] || continue
    IFS=$'\t' read -ra further <<<"$rest"
    link=$(ip -o link show dev "$interface" 2>&1)
    paths "$next" "$address" "${further[@]}"
    if [ "$next" = "$previous" ]; then
        connections "$next" "$address" "${further[@]}"
    else
        connections "$next" "$address" "$previous" "$address_before" "${further[@]}"
    fi
done <ring.txt
printf 'end\n'
