#!/bin/bash
# HealthCheckProgram for slurmd: drains its own node where dgxcheck finds a fault. In slurm.conf:
#   HealthCheckProgram=/etc/slurm/dgxcheck-healthcheck.sh
#   HealthCheckInterval=300
#   HealthCheckNodeState=ANY,CYCLE
# slurmd gives it SLURMD_NODENAME and nothing else, not even a PATH, and kills it after 60 seconds. A code other than 0
# keeps a node of newer releases from registering, so it ends with 0 whatever happened. It resumes no node.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# SLURM_CONF=... where that is not the default; DGXCHECK_OPTIONS=... for dgxcheck health
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; export SLURM_CONF; fi
[ -n "$SLURM_CONF" ] || unset SLURM_CONF
node=${SLURMD_NODENAME:-$(hostname -s)}

# state alone, and only a fault counts; 30 + 2 + 8 + 8 seconds at most
said=$(timeout -k 2 30 dgxcheck health -q --fail-on fail --format nagios --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
said=${said%%$'\n'*}
said=${said%% | *}
# the word, not the code alone: a broken Python ends with 1 or 2 as well, and what is unknown with 0 here
case "$code $said" in
    "0 DGXCHECK OK "* | "0 DGXCHECK WARNING "* | "1 DGXCHECK "*) exit 0 ;;
    "2 DGXCHECK CRITICAL "*) said=${said#DGXCHECK * - } ;;
    *)
        # unknown, or no answer: no reason to take a node away
        logger -t dgxcheck "health of $node is not known (code $code): $said"
        exit 0
        ;;
esac

# whoever drained it before had a reason, which stays
state=$(timeout 8 sinfo -h -n "$node" -o '%T' | head -n 1)
case $state in
    drain* | down* | fail*) logger -t dgxcheck "$node is $state, and has a fault: $said" ;;
    *) timeout 8 scontrol update NodeName="$node" State=DRAIN Reason="dgxcheck: $said" ||
        logger -t dgxcheck "$node could not be drained: $said" ;;
esac
exit 0
