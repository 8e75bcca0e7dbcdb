#!/bin/bash
# node.sh INTERFACE: what this node is, one "key TAB value" a line between a header and "end". What
# cannot be had is a line "absent.KEY TAB REASON"; nothing is left out silently.
set -uf
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
interface=$1

SYSCTLS="net.ipv4.tcp_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_timestamps
net.ipv4.tcp_sack net.ipv4.tcp_window_scaling net.ipv4.tcp_moderate_rcvbuf net.ipv4.tcp_adv_win_scale
net.ipv4.tcp_autocorking net.ipv4.tcp_limit_output_bytes net.ipv4.tcp_slow_start_after_idle
net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_ecn net.ipv4.tcp_dsack
net.ipv4.tcp_recovery net.ipv4.tcp_early_retrans net.ipv4.tcp_min_tso_segs net.ipv4.tcp_tso_win_divisor
net.core.rmem_max net.core.wmem_max net.core.rmem_default net.core.wmem_default
net.core.netdev_max_backlog net.core.netdev_budget net.core.default_qdisc net.core.busy_poll
net.core.busy_read"

# say KEY WORDS...: any white space in the words, line ends too, becomes one space.
say() {
    local key=$1
    shift
    # shellcheck disable=SC2048,SC2206 # split at all white space; -f keeps it from globbing
    local words=($*)
    printf '%s\t%s\n' "$key" "${words[*]}"
}

# known KEY VALUE REASON: the value, or where it is empty why it is absent.
known() {
    if [[ $2 == *[![:space:]]* ]]; then say "$1" "$2"; else say "absent.$1" "$3"; fi
}

# table KEY PATTERN COMMAND...: each "name: value" line of a command's output that fits.
table() {
    local key=$1 pattern=$2 output line found=
    shift 2
    if ! output=$("$@" 2>&1); then
        say "absent.$key" "$*: ${output:-failed and said nothing}"
        return
    fi
    while IFS= read -r line; do
        [[ $line =~ $pattern ]] || continue
        say "$key.${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        found=1
    done <<<"$output"
    [ -n "$found" ] || say "absent.$key" "$*: prints none"
}

# field NAME: value of "NAME: value" in $described.
field() {
    [[ $'\n'$described =~ $'\n'[[:space:]]*"$1":[[:blank:]]*([^$'\n']*) ]] && echo "${BASH_REMATCH[1]}"
}

program() {
    local name=$1 path sum library resolved
    path=$(type -P "$name") || {
        say "absent.programs.$name" "not on PATH"
        return
    }
    sum=$(sha256sum "$(readlink -f "$path")") || {
        say "absent.programs.$name" "$path cannot be read"
        return
    }
    say "programs.$name" "${sum%% *} $path"
    while read -r library _ resolved _; do
        case $library in
        libmpi.so* | libmpi[^a-z]*.so* | libmpich.so* | libfabric.so* | libucp.so* | libopen-pal.so*) ;;
        *) continue ;;
        esac
        [ -z "${libraries[$library $resolved]:-}" ] || continue
        libraries[$library $resolved]=1
        if sum=$(sha256sum "$(readlink -f "$resolved")" 2>&1); then
            say "programs.$library of $name" "${sum%% *} $(readlink -f "$resolved")"
        else
            say "absent.programs.$library of $name" "not found by the loader"
        fi
    done < <(ldd "$path" 2>/dev/null)
}

printf 'netproof-node\t1\n'
say node "${SLURMD_NODENAME:-$(uname -n)}"
say kernel "$(uname -rv)"
say architecture "$(uname -m)"
cpu=$(sed -n 's/^model name[[:space:]]*: //p;T;q' /proc/cpuinfo)
known cpu "$cpu" "/proc/cpuinfo names no model"
known cpus "$(getconf _NPROCESSORS_ONLN)" "getconf does not count them"
say interface "$interface"
link=$(ip -o link show dev "$interface" 2>&1)
[[ $link =~ \ mtu\ ([0-9]+) ]]
known mtu "${BASH_REMATCH[1]:-}" "ip link: $link"

if [ -z "$(type -P ethtool)" ]; then
    for key in link_mbit_s driver driver_version firmware bus nic offloads coalescing; do
        say "absent.$key" "ethtool is not installed"
    done
else
    described=$(ethtool "$interface" 2>&1)
    speed=$(field Speed)
    [[ $speed =~ ^([0-9]+)Mb/s ]]
    known link_mbit_s "${BASH_REMATCH[1]:-}" "ethtool: ${speed:-$described}"
    described=$(ethtool -i "$interface" 2>&1)
    bus=$(field bus-info)
    known driver "$(field driver)" "ethtool -i: $described"
    known driver_version "$(field version)" "ethtool -i gives none"
    known firmware "$(field firmware-version)" "ethtool -i gives none"
    known bus "$bus" "ethtool -i gives none"
    # By the bus, and not /sys/class/net: that may be another network namespace's.
    device=/sys/bus/pci/devices/${bus:-none}
    nic=
    if [ -n "$bus" ] && [ -e "$device/vendor" ]; then
        nic=$(lspci -s "$bus" 2>/dev/null)
        nic=${nic#* }
        nic="$nic [$(<"$device/vendor"):$(<"$device/device")]"
    fi
    known nic "$nic" "$interface is no PCI device"
    table offloads '^[[:space:]]*([^:[:space:]]+): (.+)' ethtool -k "$interface"
    table coalescing '^([^:]+):[[:blank:]]*(.+)' ethtool -c "$interface"
fi

for name in $SYSCTLS; do
    file=/proc/sys/${name//.//}
    if value=$(cat "$file" 2>/dev/null); then
        say "sysctls.$name" "${value:-(empty)}"
    else
        say "absent.sysctls.$name" "$file is not there for this kernel and network namespace"
    fi
done

declare -A libraries=()
for name in NPtcp NPmpi IMB-MPI1; do
    program "$name"
done
printf 'end\n'
