#!/bin/bash
# HealthCheckProgram for slurmd: drains its own node if dgxcheck finds a fault, and resumes it when the fault is gone.
# In slurm.conf:
#   HealthCheckProgram=/etc/slurm/dgxcheck/slurm-healthcheck.sh
#   HealthCheckInterval=300
#   HealthCheckNodeState=ANY,CYCLE
# slurm-nodes.sh beside it decides, and has the settings in its head. slurmd sets only SLURMD_NODENAME, not even PATH,
# and kills the program after 60 seconds. With newer releases a non-zero exit code prevents the node from registering, so
# the script always exits with 0.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# may set SLURM_CONF, if it is not the default, and DGXCHECK_OPTIONS for dgxcheck health
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi
if [ -n "$SLURM_CONF" ]; then export SLURM_CONF; else unset SLURM_CONF; fi
node=${SLURMD_NODENAME:-$(hostname -s)}

# What was drained for a fault of the default level is checked with that level, and the checks that found the faults have
# to judge: one that cannot is unknown, and the node stays drained.
options=(-q)
IFS='|' read -r state old < <(timeout 4 sinfo -a -h -N -n "$node" -o '%T|%E')
if [[ $state == drain* && $old == "dgxcheck: "*"; level "* ]]; then
    level=${old##*; level }
    [ "$level" = default ] && options=()
    if [ "$level" != extended ]; then
        required=$(grep -oE '(^dgxcheck: |; )[a-z0-9]+\.[a-z0-9-]+' <<<"$old" | grep -oE '[a-z0-9]+\.[a-z0-9-]+$' | paste -sd,)
        options+=(${required:+--require "$required"})
    fi
fi

# current state only, and only a fault counts; at most 4 + 30 + 2 seconds, and some 20 for what follows
result=$(timeout -k 2 30 dgxcheck health "${options[@]}" --fail-on fail --format drain-reason --deadline 20 $DGXCHECK_OPTIONS 2>&1 </dev/null)
code=$?
result=${result%%$'\n'*}
if [[ $state != drain* && "$code $result" =~ ^[01]\ dgxcheck:\ (pass|warn)\;\ level\  ]]; then
    : # in service, and stays there
elif [[ "$code $result" =~ ^[0-3]\ dgxcheck:\ .*\;\ level\  ]]; then # a broken Python also exits with 1 or 2
    printf '%s\t%s\n' "$node" "$result" | "${0%/*}/slurm-nodes.sh"
else
    logger -t dgxcheck -- "health of $node is unknown (exit code $code): $result"
fi
exit 0
