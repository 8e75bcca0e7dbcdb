#!/bin/bash
# peer.sh FILE COMMAND...: runs COMMAND in the environment that the job began with, as FILE then sets
# it up for another MPI library, and not in that of the job's own.
began=()
start=/proc/${netproof_job_script:?}/environ
# The job script exports its environment on top of what it was started with, which the kernel keeps.
while IFS= read -r -d '' entry; do
    [[ $entry != *=* ]] || began+=("$entry")
done 2>/dev/null <"$start"
if [ ${#began[@]} -eq 0 ]; then
    # Without it srun would take itself to be outside of the job.
    echo "peer.sh: $start cannot be read, so the environment that the job began with is not known" >&2
    exit 3
fi
# shellcheck disable=SC2016 # to be expanded by the shell that is started
exec env -i "${began[@]}" bash -c '. "$0" >&2 && exec "$@"' "$@"
