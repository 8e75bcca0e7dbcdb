#!/bin/bash
# path.sh INTERFACE: whether packets of the interface's MTU come through to the next node of
# ring.txt, where nothing on the way may fragment them. Lines as node.sh has them.
set -uf
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
interface=$1
headers=28
# The least that ping sends by itself, headers with it.
small=84

# passes BYTES: whether one of three packets of so many bytes is answered; said: what ping said.
passes() {
    local attempt
    for attempt in 1 2 3; do
        said=$(ping -n -q -M do -c 1 -W 1 -s $(($1 - headers)) -I "$interface" "$address" 2>&1) && return
    done
    return 1
}

# The reason for which it is not known; any white space in it becomes one space.
absent() {
    # shellcheck disable=SC2048,SC2206
    local words=($*)
    printf 'absent.path_passed_bytes\t%s\n' "${words[*]}"
}

mine=${SLURMD_NODENAME:-$(uname -n)}
printf 'netproof-path\t1\nnode\t%s\n' "$mine"
while IFS=$'\t' read -r name next address; do
    [ "$name" = "$mine" ] || continue
    printf 'path_to\t%s\n' "$next"
    link=$(ip -o link show dev "$interface" 2>&1)
    if ! [[ $link =~ \ mtu\ ([0-9]+) ]]; then
        absent "ip link: $link"
        continue
    fi
    mtu=${BASH_REMATCH[1]}
    printf 'path_asked_bytes\t%s\n' "$mtu"
    if [ -z "$address" ]; then
        absent "$next has no IPv4 address on $interface"
    elif [ -z "$(type -P ping)" ]; then
        absent "ping is not installed"
    elif passes "$mtu"; then
        printf 'path_passed_bytes\t%s\n' "$mtu"
    elif passes "$small"; then
        printf 'path_passed_bytes\t%s\n' "$small"
    else
        absent "ping of $address over $interface: ${said:-no answer}"
    fi
done <ring.txt
printf 'end\n'
