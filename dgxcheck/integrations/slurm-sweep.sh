#!/bin/bash
# Checks nodes with a job: sbatch -N 16 slurm-sweep.sh [-e] [--duration 30m ...]. Without -e the default level, which puts
# no load on the GPUs; all arguments go to dgxcheck health. Results are kept in a folder per job below DGXCHECK_RESULTS,
# which all nodes have to share, and judged together. Run as root or SlurmUser, the job also drains nodes with a fault:
# DGXCHECK_APPLY=/etc/slurm/dgxcheck/slurm-nodes.sh sbatch ...
# Then nobody else may write below DGXCHECK_RESULTS: a result put there would drain or resume any node.
#SBATCH --job-name=dgxcheck
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --output=dgxcheck-%j.txt
results=${DGXCHECK_RESULTS:-$PWD/dgxcheck-results}/$SLURM_JOB_ID
mkdir -p "$results" || exit 3
# a file per task: srun cuts long lines into pieces of 1 KiB and mixes those of all nodes in one file. A task that hangs
# ends 60 seconds after the first one; its node has no result
srun --wait="${DGXCHECK_WAIT:-60}" --kill-on-bad-exit=0 --output="$results/%N-%t.json" \
    dgxcheck health --format jsonl --fail-on never "$@"
dgxcheck fleet -n "$SLURM_JOB_NODELIST" "$results"
code=$?
if [ -n "$DGXCHECK_APPLY" ]; then
    # with -n a file counts for the node after which it is called alone, whatever host its lines name
    dgxcheck fleet -n "$SLURM_JOB_NODELIST" --format drain-reason --fail-on never "$results" | "$DGXCHECK_APPLY"
fi
exit $code
