# shellcheck shell=bash
# Sourced by rank.sh: the kernel's network counters of a node before and after a launch, in lines that
# netproof reads. Uses shell builtins only, and ethtool for the interfaces in $netproof_rails if
# $netproof_driver_counters is 1.

declare -A network=()

# read_interfaces: reads the interfaces in /proc/net/dev and /sys into the array network.
read_interfaces() {
    local IFS=$' \t\n' lines=() again=() line name folder received sent changes
    mapfile -t lines 2>/dev/null </proc/net/dev
    # Only /sys counts carrier changes, but it may show another network namespace. So its bytes are read
    # too, and have to lie between two readings of /proc/net/dev.
    for line in "${lines[@]:2}"; do
        name=${line%:*}
        name=${name##* }
        folder=/sys/class/net/$name
        received= sent= changes=
        {
            read -r received <"$folder/statistics/rx_bytes"
            read -r sent <"$folder/statistics/tx_bytes"
            read -r changes <"$folder/carrier_changes"
        } 2>/dev/null
        network[carriers]+=$'\t'"$name ${received:--} ${sent:--} ${changes:--}"
        # Interfaces below a bond, a bridge or a VLAN count the same traffic again.
        for folder in "$folder"/lower_*; do
            [ ! -e "$folder" ] || network[carriers]+=" ${folder##*/lower_}"
        done
    done
    mapfile -t again 2>/dev/null </proc/net/dev
    IFS=$'\t'
    network[devices]="${lines[*]}"
    network[devices-again]="${again[*]}"
}

# keep_carriers NODE: appends the carrier changes so far to the node's file in the job's folder. Its
# next launch counts from there, since a link may go down and come back while nothing runs.
keep_carriers() {
    # Appended, since a process killed while it rewrites a file leaves it empty.
    { printf '%s\n' "${network[carriers]-}" >>"${netproof_folder:-.}/carriers.$1"; } 2>/dev/null
}

# read_network: reads every source into the array network, by the source's name; empty if unreadable.
read_network() {
    local IFS=$' \t\n' lines=() line name i words
    local processed=0 dropped=0 squeezed=0
    network=()
    read_interfaces
    for name in snmp netstat; do
        lines=()
        mapfile -t lines 2>/dev/null </proc/net/$name
        for ((i = 0; i + 1 < ${#lines[@]}; i += 2)); do
            case ${lines[i]%%:*} in
            Ip | Tcp | TcpExt)
                network[$name-names]+=$'\t'${lines[i]}
                network[$name]+=$'\t'${lines[i + 1]}
                ;;
            esac
        done
    done
    lines=()
    mapfile -t lines 2>/dev/null </proc/net/softnet_stat
    for line in "${lines[@]}"; do
        # shellcheck disable=SC2206 # split at white space
        words=($line)
        ((processed += 16#${words[0]}, dropped += 16#${words[1]}, squeezed += 16#${words[2]}))
    done
    [ "${#lines[@]}" -eq 0 ] || network[softnet]="$processed $dropped $squeezed"
    read_drivers
    read_infiniband
}

# read_drivers: reads the drivers' counters, without those of single queues, whose sums are included.
read_drivers() {
    local name lines line program counter
    [ "${netproof_driver_counters-}" = 1 ] || return
    program=$(PATH=$PATH:/usr/sbin:/sbin type -P ethtool)
    for name in ${netproof_rails-}; do
        lines=()
        [ -z "$program" ] || mapfile -t lines < <("$program" -S "$name" 2>&1)
        network[driver $name]=$'\t'${lines[0]-"ethtool is not installed"}
        for line in "${lines[@]:1}"; do
            counter=${line#"${line%%[![:space:]]*}"}
            case $counter in
            rx[0-9]* | tx[0-9]* | ch[0-9]* | [rt]x-[0-9]* | [rt]x_queue_[0-9]* | queue_[0-9]* | \[[0-9]*) ;;
            *) network[driver $name]+=$'\t'$counter ;;
            esac
        done
    done
}

# read_infiniband: reads the ports of InfiniBand and RoCE cards, whose traffic bypasses the kernel.
read_infiniband() {
    local folder port device name file value
    for folder in /sys/class/infiniband/*/ports/*; do
        [ -d "$folder" ] || continue
        port=${folder##*/}
        device=${folder#/sys/class/infiniband/}
        device=${device%%/*}
        name="infiniband $device/$port"
        value=
        { read -r value <"$folder/link_layer"; } 2>/dev/null
        network[$name]=$'\t'${value:--}
        for file in "/sys/class/infiniband/$device/device/net/"*; do
            value=0
            { read -r value <"$file/dev_port"; } 2>/dev/null
            # Ports count from 1, and the interfaces of one device from 0.
            [ ! -e "$file" ] || [ "$((value + 1))" -ne "$port" ] || network[$name]+=" ${file##*/}"
        done
        for file in "$folder/counters/"* "$folder/hw_counters/"*; do
            # The lifespan of cached readings is no counter.
            [ -f "$file" ] && [ "${file##*/}" != lifespan ] || continue
            value=
            { read -r value <"$file"; } 2>/dev/null
            network[$name]+=$'\t'"${file#"$folder/"}: ${value:--}"
        done
    done
}

# say_counted NODE WHAT TEXT: prints lines of fewer than 1,024 bytes, which srun leaves whole.
say_counted() {
    local what=$2 text=$3
    while :; do
        network_said=$((network_said + 1))
        printf 'netproof counters on %s\t%s\t%s\t%s\tend\n' \
            "$1" "$network_said" "$what" "${text:0:800}"
        text=${text:800}
        [ -n "$text" ] || break
        what=more
    done
}

# network_before NODE: reads each source, and the node's carrier changes stored before.
network_before() {
    local key kept=()
    { mapfile -t kept <"${netproof_folder:-.}/carriers.$1"; } 2>/dev/null
    network_since=
    [ "${#kept[@]}" -eq 0 ] || network_since=${kept[-1]}
    read_network
    declare -gA network_was=()
    for key in "${!network[@]}"; do network_was[$key]=${network[$key]}; done
}

# network_after NODE STATUS: prints each source before and now, in numbered lines; the last one marks
# the end. STATUS: the program's.
network_after() {
    local key same= network_said=0
    read_network
    {
        [ -z "$network_since" ] || say_counted "$1" "since carriers" "$network_since"
        for key in "${!network_was[@]}"; do
            say_counted "$1" "before $key" "${network_was[$key]}"
        done
        for key in "${!network[@]}"; do
            if [ "${network[$key]}" = "${network_was[$key]-}" ]; then
                same+=$'\t'$key
            else
                say_counted "$1" "after $key" "${network[$key]}"
            fi
        done
        say_counted "$1" same "$same"
        # srun may cut off these lines if a launch fails; then the next one counts it again.
        [ "$2" -ne 0 ] || keep_carriers "$1"
        say_counted "$1" last ""
    } >&2
}
