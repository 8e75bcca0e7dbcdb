#!/bin/bash
# look.sh node PYTHON ROOT: describes this node, "key TAB value…" lines between a header and "end".
# look.sh networks NODE NODE: the rate of each network between two nodes at several sizes, by NPtcp.
# look.sh environment NODE,NODE PMI…: programs and MPI library here, and two ranks of each program.
# Runs before a site is known; look.py reads what it leaves.
set -uf
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
PROGRAMS="NPtcp NPmpi IMB-MPI1 osu_bw"
BYTES=1048576
SIZES="-l 4096 -u $BYTES -p 0 -n 5"

# line WORDS...: prints them with tabs between; what is empty is a dash.
line() {
    local word text=
    for word in "$@"; do
        word=${word//[$'\t\n']/ }
        text+=${text:+$'\t'}${word:--}
    done
    printf '%s\n' "$text"
}

# content FILE: prints its first line, nothing if it cannot be read.
content() {
    local text=
    { IFS= read -r text <"$1"; } 2>/dev/null
    printf '%s' "$text"
}

interfaces() {
    local link name address described speed driver
    local pattern='^[0-9]+: ([^:@]+)[^:]*: <([^>]*)>.* mtu ([0-9]+)' drivers=$'\nversion: ([^[:space:]]+)'
    while IFS= read -r link; do
        [[ $link =~ $pattern ]] || continue
        name=${BASH_REMATCH[1]}
        local flags=,${BASH_REMATCH[2]}, mtu=${BASH_REMATCH[3]}
        case $flags in *,LOOPBACK,*) continue ;; esac
        case $flags in *,LOWER_UP,*) ;; *) continue ;; esac
        address=
        [[ $(ip -o -4 addr show dev "$name" 2>/dev/null) =~ \ inet\ ([0-9.]+) ]] && address=${BASH_REMATCH[1]}
        described=$(ethtool "$name" 2>/dev/null)
        speed=
        [[ $described =~ Speed:\ ([0-9]+)Mb/s ]] && speed=${BASH_REMATCH[1]}
        described=$(ethtool -i "$name" 2>/dev/null)
        driver=
        [[ $described =~ driver:\ ([^$'\n']+) ]] && driver=${BASH_REMATCH[1]}
        [[ $described =~ $drivers ]] && driver+=" ${BASH_REMATCH[1]}"
        local card=
        [[ $described =~ bus-info:\ ([0-9a-f:.]+) ]] && card=$(lspci -s "${BASH_REMATCH[1]}" 2>/dev/null)
        line interface "$name" "$mtu" "$speed" "$address" "$driver" "${card##*: }"
    done < <(ip -o link show 2>/dev/null)
}

devices() {
    local device port nets
    set +f
    for device in /sys/class/infiniband/* /sys/class/cxi/*; do
        # Soft-RoCE and Soft-iWARP are no cards, and have no device.
        [ -e "$device/device" ] || continue
        port=$device/ports/1
        nets=
        for one in "$device"/device/net/*; do [ ! -e "$one" ] || nets+="${nets:+ }${one##*/}"; done
        line device "${device##*/}" "$(content "$port/link_layer")" "$(content "$port/rate")" \
            "$(content "$port/state")" "$(content "$device/device/numa_node")" "$nets"
    done
    set -f
}

node() {
    local python=$1 root=$2 said
    printf 'netproof-look\t1\n'
    line node "${SLURMD_NODENAME:-$(uname -n)}"
    # As a job begins, with all that it imports.
    said=$(PYTHONPATH=$root "$python" -c 'import netproof.jobs.acceptance' 2>&1) && said= || said=${said:-status $?}
    line python "${said##*$'\n'}"
    interfaces
    devices
    printf 'end\n'
}

# address NODE INTERFACE: prints the interface's address, which the node has left in its file.
address() {
    local key name mtu speed address rest
    while IFS=$'\t' read -r key name mtu speed address rest; do
        [ "$key $name" != "interface $2" ] || { [ "$address" = - ] || printf '%s' "$address"; }
    done <"node.$1.txt"
}

networks() {
    local key name rest to
    # shellcheck disable=SC2086 # words
    [ -n "$(type -P NPtcp)" ] || return
    : >networks
    while IFS=$'\t' read -r key name rest; do
        [ "$key" = interface ] || continue
        to=$(address "$1" "$name")
        [ -n "$to" ] || continue
        timeout 25 srun --mpi=none --overlap -N1 -n1 -w "$1" --input=none --output="network.$name.to" \
            NPtcp $SIZES &
        sleep 2
        timeout 20 srun --mpi=none --overlap -N1 -n1 -w "$2" --input=none --output="network.$name.out" \
            NPtcp -h "$to" $SIZES -o "network.$name.np"
        wait
    done <"node.$1.txt"
}

# library PROGRAM: prints which MPI library a program loads, and its version.
library() {
    local path said version=
    path=$(type -P "$1") || return
    said=$(ldd "$path" 2>/dev/null | grep -oE '/[^ )]*/libmpi(ch)?\.so[^ ):]*' | head -n 1)
    case $said in
    *libmpi.so.[234]*) version=$(ompi_info --version 2>/dev/null | head -n 1) ;;
    *) version=$(mpichversion 2>/dev/null | grep -m 1 -i version) ;;
    esac
    [ -n "$version" ] || version=$(timeout 20 mpirun --version 2>/dev/null | grep -m 1 -iE 'version|mpi')
    line library "$said" "$version"
}

# carried PROGRAM: prints how many bytes each interface here has sent since the first call.
carried() {
    local interface sent
    set +f
    for interface in /sys/class/net/*; do
        sent=$(content "$interface/statistics/tx_bytes")
        interface=${interface##*/}
        [ -z "$sent" ] || [ -z "${before[$interface]-}" ] || line carried "$1" "$interface" "$((sent - before[$interface]))"
        before[$interface]=$sent
    done
    set -f
}

arguments() {
    case $1 in
    NPmpi) echo "-l $BYTES -u $BYTES -p 0 -n 10 -o NPmpi.np" ;;
    IMB-MPI1) echo "PingPong -msglog 20:20 -iter 20" ;;
    osu_bw) echo "-m $BYTES:$BYTES -i 10 -x 1" ;;
    esac
}

environment() {
    local nodes=$1 program pmi status where="-N2 --ntasks-per-node=1" found=
    local -A before=()
    shift
    [[ $nodes == *,* ]] || where="-N1 --ntasks-per-node=2"
    printf 'netproof-look\t1\n'
    for program in $PROGRAMS; do
        [ -z "$(type -P "$program")" ] || line program "$program" "$(type -P "$program")"
    done
    for program in NPmpi IMB-MPI1 osu_bw; do
        [ -n "$(type -P "$program")" ] || continue
        [ -n "$found" ] || library "$program"
        for pmi in ${found:-"$@"}; do
            # shellcheck disable=SC2046,SC2086 # words
            carried "$program" >/dev/null
            timeout -k 5 60 srun --mpi="$pmi" --overlap -n2 $where -w "$nodes" --kill-on-bad-exit=1 --input=none \
                --output="$program.$pmi.out" --error="$program.$pmi.err" "$program" $(arguments "$program")
            status=$?
            line ran "$program" "$pmi" "$status"
            if [ "$status" -eq 0 ] && grep -qE "^ *$BYTES|: *$BYTES bytes" "$program.$pmi.out" "$program.$pmi.err" 2>/dev/null; then
                found=$pmi
                carried "$program"
                break
            fi
        done
    done
    printf 'end\n'
}

"$@"
