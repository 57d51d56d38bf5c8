#!/bin/bash
# Prolog for slurmd: jobs do not start on a box with a fault. In slurm.conf:
#   Prolog=/etc/slurm/prolog.d/*
#   PrologEpilogTimeout=120
# A non-zero exit code drains the node and requeues the job. Warnings, an unknown verdict and a missing dgxcheck do not.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi

result=$(timeout -k 2 30 dgxcheck health -q --fail-on fail --format nagios --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
result=${result%%$'\n'*}
result=${result%% | *}
# with --fail-on fail, warnings and an unknown verdict exit with 0 too
[[ "$code $result" == "0 DGXCHECK OK "* ]] || logger -t dgxcheck "prolog of job ${SLURM_JOB_ID:-?} (exit code $code): $result"
# check the word too: a broken Python also exits with 2
case "$code $result" in
    "2 DGXCHECK CRITICAL "*)
        # slurmd logs this message and drains the node with the reason "Prolog error"
        echo "dgxcheck: ${result#DGXCHECK * - }" >&2
        exit 1
        ;;
esac
exit 0
