#!/bin/bash
# Prolog for slurmd: no job starts on a box with a fault. In slurm.conf:
#   Prolog=/etc/slurm/prolog.d/*
#   PrologEpilogTimeout=120
# A code other than 0 drains the node and puts the job back in the queue. A warning does not, nor does what cannot be
# told, nor a missing dgxcheck.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi

said=$(timeout -k 2 30 dgxcheck health -q --fail-on fail --format nagios --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
said=${said%%$'\n'*}
said=${said%% | *}
# with --fail-on fail a warning and what is unknown end with 0 as well
[[ "$code $said" == "0 DGXCHECK OK "* ]] || logger -t dgxcheck "prolog of job ${SLURM_JOB_ID:-?} (code $code): $said"
# the word, not the code alone: a broken Python ends with 2 as well
case "$code $said" in
    "2 DGXCHECK CRITICAL "*)
        # slurmd writes it to its log and drains the node with "Prolog error"
        echo "dgxcheck: ${said#DGXCHECK * - }" >&2
        exit 1
        ;;
esac
exit 0
