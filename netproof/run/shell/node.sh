#!/bin/bash
# node.sh INTERFACE PROGRAM...: describes this node, one "key TAB value" a line between a header and
# "end". Missing values have a line "absent.KEY TAB REASON"; nothing is left out silently.
set -uf
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
clock=$EPOCHREALTIME
interface=$1
shift
. "${BASH_SOURCE[0]%/*}/counters.sh"
read_interfaces
keep_carriers "${SLURMD_NODENAME:?}"

SYSCTLS="net.ipv4.tcp_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_timestamps
net.ipv4.tcp_sack net.ipv4.tcp_window_scaling net.ipv4.tcp_moderate_rcvbuf net.ipv4.tcp_adv_win_scale
net.ipv4.tcp_autocorking net.ipv4.tcp_limit_output_bytes net.ipv4.tcp_slow_start_after_idle
net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_ecn net.ipv4.tcp_dsack
net.ipv4.tcp_recovery net.ipv4.tcp_early_retrans net.ipv4.tcp_min_tso_segs net.ipv4.tcp_tso_win_divisor
net.core.rmem_max net.core.wmem_max net.core.rmem_default net.core.wmem_default
net.core.netdev_max_backlog net.core.netdev_budget net.core.default_qdisc net.core.busy_poll
net.core.busy_read"

# say KEY WORDS...: prints them; any white space in the words, line ends too, becomes one space.
say() {
    local key=$1
    shift
    # shellcheck disable=SC2048,SC2206 # split at all white space; -f keeps it from globbing
    local words=($*)
    printf '%s\t%s\n' "$key" "${words[*]}"
}

# known KEY VALUE REASON: prints the value, or the reason if it is empty.
known() {
    if [[ $2 == *[![:space:]]* ]]; then say "$1" "$2"; else say "absent.$1" "$3"; fi
}

# table KEY PATTERN COMMAND...: prints each "name: value" line of a command's output that matches.
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

# rings INTERFACE: prints the sizes of its rings, and their maximums.
rings() {
    local output line maximum= found=
    if ! output=$(ethtool -g "$1" 2>&1); then
        say absent.rings "ethtool -g $1: ${output:-failed and said nothing}"
        return
    fi
    while IFS= read -r line; do
        case $line in
        Pre-set\ maximums:*) maximum=" maximum" ;;
        Current\ hardware\ settings:*) maximum= ;;
        *)
            [[ $line =~ ^([^:]+):[[:blank:]]+([^[:blank:]].*) ]] || continue
            say "rings.${BASH_REMATCH[1]}$maximum" "${BASH_REMATCH[2]}"
            found=1
            ;;
        esac
    done <<<"$output"
    [ -n "$found" ] || say absent.rings "ethtool -g $1: prints none"
}

# content FILE: prints its text, nothing if it cannot be read.
content() {
    { [ ! -r "$1" ] || printf '%s' "$(<"$1")"; } 2>/dev/null
}

# pci BUS: prints the PCI link of the card at that address: its speed and width, and their maximums.
pci() {
    local name file value
    if [ -z "$1" ] || [ ! -e "/sys/bus/pci/devices/$1" ]; then
        say absent.pci "$interface is no PCI device"
        return
    fi
    for name in "speed current_link_speed" "maximum speed max_link_speed" \
        "width current_link_width" "maximum width max_link_width"; do
        file=/sys/bus/pci/devices/$1/${name##* }
        value=$(content "$file")
        # Virtual functions have no link of their own.
        case $value in Unknown* | 0) value= ;; esac
        known "pci.${name% *}" "$value" "$file does not say"
    done
}

# Prints the governor; if CPUs differ, each one with its number of CPUs.
governor() {
    local file value found=
    local -A counts=()
    set +f
    for file in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
        value=$(content "$file")
        [ -z "$value" ] || counts[$value]=$((${counts[$value]:-0} + 1))
    done
    set -f
    for value in "${!counts[@]}"; do
        if [ "${#counts[@]}" -gt 1 ]; then found+="${found:+, }$value on ${counts[$value]}"; else found=$value; fi
    done
    known governor "$found" "the kernel sets no CPU frequencies here"
}

# Prints the memory in KiB, in all and per NUMA node.
memory() {
    local file name value numa found=
    while read -r name value _; do
        [ "$name" != MemTotal: ] || say "memory.total KiB" "$value"
    done </proc/meminfo
    set +f
    for file in /sys/devices/system/node/node[0-9]*/meminfo; do
        [ -r "$file" ] || continue
        while read -r _ numa name value _; do
            [ "$name" != MemTotal: ] || say "memory.NUMA $numa KiB" "$value"
        done <"$file"
        found=1
    done
    set -f
    [ -n "$found" ] || say absent.memory.NUMA "the kernel has no NUMA nodes"
}

# Prints the kernel's mitigations of CPU flaws: from its command line, and those in effect.
mitigations() {
    local word words= file value
    for word in $(content /proc/cmdline); do
        case $word in
        mitigations=* | nosmt* | nopti | pti=* | nospec* | spec* | retbleed=* | l1tf=* | mds=* | tsx*=* | \
            mmio_stale_data=* | srbds=* | gather_data_sampling=* | reg_file_data_sampling=*)
            words+=" $word"
            ;;
        esac
    done
    say "mitigations.command line" "${words:-(none)}"
    set +f
    for file in /sys/devices/system/cpu/vulnerabilities/*; do
        value=$(content "$file")
        [ -z "$value" ] || say "mitigations.${file##*/}" "$value"
    done
    set -f
}

# Prints the clock's offset from network time, by chrony or NTP.
ntp() {
    local said fields
    if [ -n "$(type -P chronyc)" ]; then
        said=$(timeout 2 chronyc -n -c tracking 2>&1)
        IFS=, read -r -a fields <<<"$said"
        if [ "${#fields[@]}" -ge 14 ] && [ "${fields[13]}" != "Not synchronised" ]; then
            say clock_ntp_offset_s "${fields[4]}"
        else
            say absent.clock_ntp_offset_s "chronyc tracking: ${said:-nothing said in 2 s}"
        fi
    elif [ -n "$(type -P ntpq)" ]; then
        said=$(timeout 2 ntpq -n -c 'rv 0 leap,offset' 2>&1)
        # In milliseconds.
        if [[ $said =~ leap=(00|01|10),.*offset=([-+]?[0-9.]+) ]]; then
            say clock_ntp_offset_s "${BASH_REMATCH[2]}e-3"
        else
            say absent.clock_ntp_offset_s "ntpq: ${said:-nothing said in 2 s}"
        fi
    else
        say absent.clock_ntp_offset_s "neither chronyc nor ntpq is installed"
    fi
}

# field NAME: prints the value of "NAME: value" in $described.
field() {
    [[ $'\n'$described =~ $'\n'[[:space:]]*"$1":[[:blank:]]*([^$'\n']*) ]] && echo "${BASH_REMATCH[1]}"
}

# A program is busy if it uses this percentage of a CPU over this many ms.
BUSY_PERCENT=10
BUSY_MS=500

# taken: sets $ticks to the CPU ticks of each process by its number, and $named to its name.
taken() {
    local file line name fields
    ticks=() named=()
    set +f
    for file in /proc/[0-9]*/stat; do
        IFS= read -r line 2>/dev/null <"$file" || continue
        # The name, in parentheses, may hold anything.
        name=${line#*(}
        name=${name%)*}
        # shellcheck disable=SC2206 # numbers
        fields=(${line##*) })
        file=${file#/proc/}
        ticks[${file%/stat}]=$((fields[11] + fields[12]))
        named[${file%/stat}]=${name//[^[:alnum:]_.:\/+-]/_}
    done
    set -f
}

took_before() {
    taken
    ticks_before=()
    local number
    for number in "${!ticks[@]}"; do ticks_before[number]=${ticks[number]}; done
    taken_at=${EPOCHREALTIME/./}
}

# of_this_job NUMBER: checks whether the process has this job's id among its variables.
of_this_job() {
    local variable
    while IFS= read -r -d '' variable; do
        [ "$variable" != "SLURM_JOB_ID=${SLURM_JOB_ID:-}" ] || return 0
    done 2>/dev/null <"/proc/$1/environ"
    return 1
}

# Prints the processes of this network namespace, outside this job, that used CPUs since took_before.
busy() {
    local elapsed number percent found=
    elapsed=$(((${EPOCHREALTIME/./} - taken_at) / 1000))
    if [ "$elapsed" -lt "$BUSY_MS" ]; then
        printf -v elapsed '0.%03d' $((BUSY_MS - elapsed))
        sleep "$elapsed"
    fi
    taken
    elapsed=$((${EPOCHREALTIME/./} - taken_at))
    for number in "${!ticks[@]}"; do
        [ -n "${ticks_before[number]:-}" ] || continue
        # A tick is 10 ms.
        percent=$(((ticks[number] - ticks_before[number]) * 1000000 / elapsed))
        [ "$percent" -ge "$BUSY_PERCENT" ] || continue
        # A process that cannot be examined is another user's, and counts as of this namespace.
        if [ -e "/proc/$number/ns/net" ] && ! [ "/proc/$number/ns/net" -ef /proc/self/ns/net ]; then continue; fi
        ! of_this_job "$number" || continue
        found+="${found:+, }${named[number]} (process $number of $(stat -c %U "/proc/$number" 2>/dev/null || echo nobody any more)) $percent % of a CPU"
    done
    if [ -r /proc/1/stat ]; then
        say busy "${found:-none}"
    else
        known busy "$found" "/proc hides the processes of other users"
    fi
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

printf 'netproof-node\t3\n'
took_before
say clock_s "$clock"
say node "$SLURMD_NODENAME"
say kernel "$(uname -rv)"
say architecture "$(uname -m)"
cpu=$(sed -n 's/^model name[[:space:]]*: //p;T;q' /proc/cpuinfo)
known cpu "$cpu" "/proc/cpuinfo names no model"
known microcode "$(sed -n 's/^microcode[[:space:]]*: //p;T;q' /proc/cpuinfo)" "/proc/cpuinfo names none"
known cpus "$(getconf _NPROCESSORS_ONLN)" "getconf does not count them"
governor
memory
mitigations
hugepages=$(content /sys/kernel/mm/transparent_hugepage/enabled)
[[ $hugepages =~ \[(.+)\] ]]
known hugepages "${BASH_REMATCH[1]:-}" "the kernel has no transparent hugepages"
file=/sys/devices/system/clocksource/clocksource0/current_clocksource
known clock_source "$(content "$file")" "$file is not there"
ntp
say interface "$interface"
link=$(ip -o link show dev "$interface" 2>&1)
[[ $link =~ \ mtu\ ([0-9]+) ]]
known mtu "${BASH_REMATCH[1]:-}" "ip link: $link"
[[ $link =~ \<([^\>]*)\> ]]
case ,${BASH_REMATCH[1]:-}, in
,,) say absent.state "ip link: $link" ;;
*,LOWER_UP,*) say state up ;;
*,UP,*) say state "no carrier" ;;
*) say state down ;;
esac
[[ $(ip -o -4 addr show dev "$interface" 2>&1) =~ \ inet\ ([0-9.]+) ]]
known address "${BASH_REMATCH[1]:-}" "$interface has no IPv4 address"

if [ -z "$(type -P ethtool)" ]; then
    for key in link_mbit_s duplex autonegotiation driver driver_version firmware bus nic pci offloads \
        coalescing rings; do
        say "absent.$key" "ethtool is not installed"
    done
else
    described=$(ethtool "$interface" 2>&1)
    speed=$(field Speed)
    [[ $speed =~ ^([0-9]+)Mb/s ]]
    known link_mbit_s "${BASH_REMATCH[1]:-}" "ethtool: ${speed:-$described}"
    duplex=$(field Duplex)
    [[ $duplex == Unknown* ]] || known duplex "$duplex" "ethtool gives none"
    [[ $duplex != Unknown* ]] || say absent.duplex "ethtool: $duplex"
    known autonegotiation "$(field Auto-negotiation)" "ethtool gives none"
    described=$(ethtool -i "$interface" 2>&1)
    bus=$(field bus-info)
    known driver "$(field driver)" "ethtool -i: $described"
    known driver_version "$(field version)" "ethtool -i gives none"
    known firmware "$(field firmware-version)" "ethtool -i gives none"
    known bus "$bus" "ethtool -i gives none"
    # Found by the bus, since /sys/class/net may be another network namespace's.
    device=/sys/bus/pci/devices/${bus:-none}
    nic=
    if [ -n "$bus" ] && [ -e "$device/vendor" ]; then
        nic=$(lspci -s "$bus" 2>/dev/null)
        nic=${nic#* }
        nic="$nic [$(<"$device/vendor"):$(<"$device/device")]"
    fi
    known nic "$nic" "$interface is no PCI device"
    pci "$bus"
    table offloads '^[[:space:]]*([^:[:space:]]+): (.+)' ethtool -k "$interface"
    table coalescing '^([^:]+):[[:blank:]]*(.+)' ethtool -c "$interface"
    rings "$interface"
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
for name in "$@"; do
    program "$name"
done
busy
printf 'end\n'
