#!/bin/bash
# HealthCheckProgram for slurmd: drains its own node if dgxcheck finds a fault. In slurm.conf:
#   HealthCheckProgram=/etc/slurm/dgxcheck-healthcheck.sh
#   HealthCheckInterval=300
#   HealthCheckNodeState=ANY,CYCLE
# slurmd sets only SLURMD_NODENAME, not even PATH, and kills the program after 60 seconds. With newer releases a non-zero
# exit code prevents the node from registering, so the script always exits with 0. It never resumes a node.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# may set SLURM_CONF, if it is not the default, and DGXCHECK_OPTIONS for dgxcheck health
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; export SLURM_CONF; fi
[ -n "$SLURM_CONF" ] || unset SLURM_CONF
node=${SLURMD_NODENAME:-$(hostname -s)}

# current state only, and only a fault counts; at most 30 + 2 + 8 + 8 seconds
result=$(timeout -k 2 30 dgxcheck health -q --fail-on fail --format nagios --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
result=${result%%$'\n'*}
result=${result%% | *}
# check the word too: a broken Python also exits with 1 or 2, and an unknown verdict exits with 0 here
case "$code $result" in
    "0 DGXCHECK OK "* | "0 DGXCHECK WARNING "* | "1 DGXCHECK "*) exit 0 ;;
    "2 DGXCHECK CRITICAL "*) result=${result#DGXCHECK * - } ;;
    *)
        # unknown, or no answer: no reason to drain the node
        logger -t dgxcheck "health of $node is unknown (exit code $code): $result"
        exit 0
        ;;
esac

# keep the reason if the node is drained already
state=$(timeout 8 sinfo -h -n "$node" -o '%T' | head -n 1)
case $state in
    drain* | down* | fail*) logger -t dgxcheck "$node is already $state and has a fault: $result" ;;
    *) timeout 8 scontrol update NodeName="$node" State=DRAIN Reason="dgxcheck: $result" ||
        logger -t dgxcheck "cannot drain $node: $result" ;;
esac
exit 0
