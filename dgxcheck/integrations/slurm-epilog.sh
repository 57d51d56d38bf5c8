#!/bin/bash
# Epilog for slurmd: no further job starts on a box that a job left with a fault. In slurm.conf:
#   Epilog=/etc/slurm/epilog.d/*
#   PrologEpilogTimeout=120
# With slurm-prolog.sh, which saves the counters, errors count that grew during the job; without it the current state
# alone is checked. A fault drains the node with its reason; warnings and an unknown verdict do not.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi

counters=/run/dgxcheck/job-${SLURM_JOB_ID:-none}.json
options=(-q)
# the kernel log is left out: it holds what was before the job, and what programs did wrong
[ -s "$counters" ] && options=(--skip kernel --state "$counters")
result=$(timeout -k 2 30 dgxcheck health "${options[@]}" --fail-on fail --format drain-reason --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
rm -f -- "$counters"
result=${result%%$'\n'*}
[[ "$code $result" == "0 dgxcheck: pass; "* ]] || logger -t dgxcheck -- "epilog of job ${SLURM_JOB_ID:-?} (exit code $code): $result"
# check the form too: a broken Python also exits with 2
if [[ "$code $result" == "2 dgxcheck: "*"; level "* ]]; then
    # give the reason before slurmd drains the node with "Epilog error"; leave an earlier drain and its reason alone
    node=${SLURMD_NODENAME:-$(hostname -s)}
    state=$(timeout -k 1 2 sinfo -a -h -N -n "$node" -o %T 2>/dev/null </dev/null)
    if [[ -n $state && $state != *drain* ]]; then
        timeout -k 1 2 scontrol update NodeName="$node" State=DRAIN Reason="$result" >/dev/null 2>&1 </dev/null
    fi
    echo "$result" >&2
    exit 1
fi
exit 0
