#!/bin/bash
# Prolog for slurmd: jobs do not start on a box with a fault. In slurm.conf:
#   Prolog=/etc/slurm/prolog.d/*
#   PrologEpilogTimeout=120
# A non-zero exit code drains the node and requeues the job. Warnings, an unknown verdict and a missing dgxcheck do not.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi

result=$(timeout -k 2 30 dgxcheck health -q --fail-on fail --format drain-reason --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
result=${result%%$'\n'*}
# with --fail-on fail, warnings and an unknown verdict exit with 0 too
[[ "$code $result" == "0 dgxcheck: pass; "* ]] || logger -t dgxcheck -- "prolog of job ${SLURM_JOB_ID:-?} (exit code $code): $result"
# check the form too: a broken Python also exits with 2
if [[ "$code $result" == "2 dgxcheck: "*"; level "* ]]; then
    # give the reason before slurmd drains the node with "Prolog error"; leave an earlier drain and its reason alone
    node=${SLURMD_NODENAME:-$(hostname -s)}
    state=$(timeout -k 1 2 sinfo -a -h -N -n "$node" -o %T 2>/dev/null </dev/null)
    if [[ -n $state && $state != *drain* ]]; then
        timeout -k 1 2 scontrol update NodeName="$node" State=DRAIN Reason="$result" >/dev/null 2>&1 </dev/null
    fi
    echo "$result" >&2
    exit 1
fi
# the counters, for slurm-epilog.sh; DGXCHECK_JOB_ERRORS=no leaves them out
if [ "${DGXCHECK_JOB_ERRORS:-yes}" = yes ] && [ -n "$SLURM_JOB_ID" ] && mkdir -p -m 700 /run/dgxcheck; then
    timeout -k 2 13 dgxcheck health --only pcie.aer --state "/run/dgxcheck/job-$SLURM_JOB_ID.json" --fail-on never \
        --deadline 10 >/dev/null 2>&1 </dev/null
    # of jobs that no epilog has ended
    ls -t /run/dgxcheck/job-*.json 2>/dev/null | tail -n +129 | xargs -r rm -f --
fi
exit 0
