#!/bin/bash
# Drains and resumes nodes of Slurm by what dgxcheck says of them. Reads lines of a node's name, a tab and its reason:
#   dgxcheck fleet --format drain-reason RESULTS | slurm-nodes.sh
# Needs operator rights. Belongs beside slurm-healthcheck.sh and slurm-sweep.sh, which call it.
#
# A node is drained with the reason itself, "dgxcheck: ...; level LEVEL", and its text is kept up to date. It is resumed
# only if its reason is still one of these, and only for a pass (or warn) of the level in it or a higher one. What
# somebody else drained, or took down, stays. At most a tenth of all nodes is drained at a time, as a broken driver or
# profile shows everywhere at once. /etc/default/dgxcheck may set
#   DGXCHECK_DRAIN_PERCENT=10   how many; one node may always be drained
#   DGXCHECK_RESUME=yes         no: never resume
#   SLURM_CONF                  if it is not the default
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
if [ -r /etc/default/dgxcheck ]; then . /etc/default/dgxcheck; fi
if [ -n "$SLURM_CONF" ]; then export SLURM_CONF; else unset SLURM_CONF; fi
percent=${DGXCHECK_DRAIN_PERCENT:-10}
[[ $percent =~ ^[0-9]{1,2}$|^100$ ]] || percent=10

name='^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$'
form='^dgxcheck: [][A-Za-z0-9 .,:;@/+_%-]{1,240}; level (quick|default|extended)$'
drained=()
declare -A reasons

log() { logger -s -t dgxcheck -- "$*"; }

# NODE|STATE|TIME|REASON of one node, or of all that are in a partition
nodes() { timeout 4 sinfo -a -h -N ${1:+-n "$1"} -o '%N|%T|%H|%E' | sort -u; }

rank() {
    case ${1##*; level } in quick) echo 0 ;; default) echo 1 ;; extended) echo 2 ;; *) echo 3 ;; esac
}

update() { timeout 4 scontrol update NodeName="$1" "${@:2}" || { log "scontrol failed for $1: ${*:2}"; return 1; }; }

# all nodes that dgxcheck has drained, in the order in which it did: TIME|NODE
ours() { nodes | awk -F'|' '$2 ~ /^drain/ && $4 ~ /^dgxcheck: .*; level [a-z]+$/ { print $3 "|" $1 }' | sort -u; }

# how many nodes may be drained; asked when the first one has to be
limit=
set_limit() {
    [ -n "$limit" ] && return
    limit=$(($(nodes | cut -d'|' -f1 | sort -u | wc -l) * percent / 100))
    [ "$limit" -gt 0 ] || limit=1
}

judge() {
    local node=$1 reason=$2 state old
    IFS='|' read -r _ state _ old < <(nodes "$node")
    if [ -z "$state" ]; then
        log "$node is not known to Slurm, or the controller does not answer: $reason"
        return
    fi
    case "$reason|$state|$old" in
        "dgxcheck: unknown; "*) log "health of $node is unknown" ;;
        "dgxcheck: pass; "*"|drain"*"|dgxcheck: "* | "dgxcheck: warn; "*"|drain"*"|dgxcheck: "*)
            if [[ $old =~ $form && ${DGXCHECK_RESUME:-yes} == yes && $(rank "$reason") -ge $(rank "$old") ]]; then
                update "$node" State=UNDRAIN && log "$node is resumed: $reason; it was drained for: $old"
            fi
            ;;
        "dgxcheck: pass; "* | "dgxcheck: warn; "*) ;;
        *"|drain"*"|dgxcheck: "*)
            if [[ $old =~ $form && $old != "$reason" && $(rank "$reason") -ge $(rank "$old") ]]; then
                update "$node" Reason="$reason"
            fi
            ;;
        *"|drain"* | *"|down"* | *"|fail"*) log "$node is already $state ($old) and has a fault: $reason" ;;
        *)
            set_limit
            if [ "$(ours | wc -l)" -ge "$limit" ]; then
                log "$node is not drained, as dgxcheck has drained $limit nodes (DGXCHECK_DRAIN_PERCENT): $reason"
            elif update "$node" State=DRAIN Reason="$reason"; then
                drained+=("$node")
            fi
            ;;
    esac
}

badness() {
    case $1 in "") echo 0 ;; *": pass; "* | *": warn; "*) echo 1 ;; *": unknown; "*) echo 2 ;; *) echo 3 ;; esac
}

while IFS=$'\t' read -r node reason; do
    if [[ $node =~ $name && ${node,,} != all && $reason =~ $form ]]; then
        # results have host names, which may be longer than names of nodes; of several of one node the worst counts
        if [[ $node == *.* ]] && [ -z "$(nodes "$node")" ]; then node=${node%%.*}; fi
        [ "$(badness "$reason")" -gt "$(badness "${reasons[$node]}")" ] && reasons[$node]=$reason
    else
        log "not a node and its drain reason: ${node:0:80} ${reason:0:80}"
    fi
done
# each node that is asked for is a request to the controller: of many that pass only the drained ones matter
all=$([ ${#reasons[@]} -gt 1 ] && nodes)
for node in $(printf '%s\n' "${!reasons[@]}" | sort); do
    [[ $all && ${reasons[$node]} =~ ^"dgxcheck: "(pass|warn)\; ]] && ! grep -qF -- "$node|drain" <<<"$all" && continue
    judge "$node" "${reasons[$node]}"
done

# Other nodes may have drained themselves in the same second. Once that has passed, all see the same order by time and
# name, and those beyond the limit take their drain back.
if [ ${#drained[@]} -gt 0 ]; then
    sleep 2
    beyond=$(ours | tail -n +$((limit + 1)) | cut -d'|' -f2)
    for node in "${drained[@]}"; do
        if grep -qxF -- "$node" <<<"$beyond"; then
            update "$node" State=UNDRAIN && log "$node has a fault and is not drained: more than $limit nodes at once"
        else
            log "$node is drained"
        fi
    done
fi
exit 0
