# shellcheck shell=bash
# Source this: `. ./activate`. Afterwards `reframe -c checks -r` and `netproof` work in this shell.
if [ -z "${BASH_VERSION:-}" ]; then
    echo "activate: source this in bash, since no other shell says where the file is" >&2
    return 2
fi
# netproof_programs: bin folder of the Python environment in which netproof is installed.
netproof_programs=PROGRAMS
netproof_site=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for netproof_program in python3 reframe netproof; do
    if [ ! -x "$netproof_programs/$netproof_program" ]; then
        echo "$netproof_site/activate: there is no $netproof_programs/$netproof_program; install" \
            "netproof there again, or put the bin folder of the Python environment that has" \
            "netproof now into this file (netproof_programs=)" >&2
        unset netproof_programs netproof_program netproof_site
        return 2
    fi
done
export PATH=$netproof_programs:$PATH
export RFM_CONFIG_PATH=$netproof_site/site-config
export RFM_REFERENCE_PREFIX=$netproof_site/reference-values
export RFM_REPORT_FILE=$netproof_site/reports/run-{sessionid}.json RFM_TIMESTAMP_DIRS=%FT%H-%M-%S
export RFM_COMPRESS_REPORT=${RFM_COMPRESS_REPORT:-true}
export NETPROOF_STORE=$netproof_site/store
export RFM_PERF_INFO_LEVEL=${RFM_PERF_INFO_LEVEL:-verbose}
unset netproof_programs netproof_program netproof_site
