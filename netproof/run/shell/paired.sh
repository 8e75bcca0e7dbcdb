#!/bin/bash
# paired.sh FILE COMMAND...: runs COMMAND in the environment that the job began with, set up by FILE for
# another MPI library, rather than in the job's own.
began=()
start=/proc/${netproof_job_script:?}/environ
# The job script has exported its own variables since; the kernel still has the initial environment.
while IFS= read -r -d '' entry; do
    [[ $entry != *=* ]] || began+=("$entry")
done 2>/dev/null <"$start"
if [ ${#began[@]} -eq 0 ]; then
    # Without it srun would assume that it is outside the job.
    echo "paired.sh: $start cannot be read, so the environment that the job began with is not known" >&2
    exit 3
fi
# shellcheck disable=SC2016 # to be expanded by the shell that is started
exec env -i "${began[@]}" bash -c '. "$0" >&2 && exec "$@"' "$@"
