#!/bin/bash
# Plug-in of node-problem-detector, for npd-dgxcheck.json: the node condition GPUUnhealthy.
# Exit code 0: no fault (False); 1: a fault (True); 2: not known (Unknown). Arguments go to dgxcheck health.
# Where node-problem-detector runs in a pod, its image needs dgxcheck, and the host's / mounted, read-only:
#   DGXCHECK_OPTIONS="--root /host" in /etc/default/dgxcheck
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi

# at most 30 + 2 seconds; node-problem-detector waits for 40
result=$(timeout -k 2 30 dgxcheck health -q --fail-on fail --format nagios --deadline 20 $DGXCHECK_OPTIONS "$@" 2>&1 </dev/null)
code=$?
result=${result%%$'\n'*}
result=${result%% | *}
# node-problem-detector cuts the message after 80 bytes, which would split a character or a word
result=${result//[^ -~]/}
message=${result#DGXCHECK * - }
if [ ${#message} -gt 80 ]; then
    message=${message:0:77}
    message="${message% *} .."
fi
echo "$message"
# check the word too: a broken Python also exits with 1 or 2, and an unknown verdict exits with 0 here
case "$code $result" in
    "0 DGXCHECK OK "* | "0 DGXCHECK WARNING "*) exit 0 ;;
    "2 DGXCHECK CRITICAL "*) exit 1 ;;
    *) exit 2 ;;
esac
