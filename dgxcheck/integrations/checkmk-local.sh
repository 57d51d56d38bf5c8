#!/bin/bash
# Local check for the agent of Checkmk: in a folder 300/ the agent runs it every 300 seconds and keeps its result.
# One line: state, name, metrics, text; "\n" in the text begins a line of the details.
output=$(timeout -k 2 50 /usr/local/bin/dgxcheck health --format nagios --deadline 40 2>&1 </dev/null)
code=$?
first=${output%%$'\n'*}
text=${first%% | *}
# check the word too: a broken Python also exits with 1 or 2
case "$code $text" in
    "0 DGXCHECK OK "* | "1 DGXCHECK WARNING "* | "2 DGXCHECK CRITICAL "* | "3 DGXCHECK UNKNOWN "*)
        # GPU0_temperature=37;~:82;~:86;0 becomes GPU0_temperature=37: ranges are Nagios' own, the state is known
        metrics=$(printf '%s' "${first#* | }" | tr -d "'" | tr ' ' '\n' |
            sed -n 's/^\([^=]*\)=\(-\{0,1\}[0-9.]*\).*/\1 \2/p' |
            while read -r name value; do printf '%s=%s|' "${name//[^A-Za-z0-9_]/_}" "$value"; done)
        text=${text#DGXCHECK * - }
        details=${output#"$first"}
        ;;
    *)
        metrics=
        text="dgxcheck did not run (exit code $code): $first"
        code=3
        details=
        ;;
esac
metrics=${metrics%|}
printf '%s dgxcheck %s %s%s\n' "$code" "${metrics:--}" "$text" "${details//$'\n'/\\n}"
