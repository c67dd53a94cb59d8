#!/bin/bash
# Grades a class with SLURM: `slurm.sh 8 submissions --assignment course.json`, with any options of labkit grade.
# Eight jobs judge a part each. A last one puts the parts together in grades/, and judges what is missing of them.
# Start it in a folder that all nodes see, where `labkit` is found. SBATCH_ACCOUNT and SBATCH_PARTITION say where to run.
#SBATCH --job-name=labkit-grade
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=2G
#SBATCH --time=02:00:00
set -euo pipefail

task=$1
shift
case $task in
part)
    exec labkit grade "$@" --out grades --workers "$SLURM_CPUS_PER_TASK" \
        --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
    ;;
whole)
    exec labkit grade "$@" --out grades --workers "$SLURM_CPUS_PER_TASK"
    ;;
*)
    if ! compgen -G "grades/judgements*.jsonl" > /dev/null; then  # a first run draws the seed that all parts share
        set -- --seed "$(od -A n -N 4 -t u4 /dev/urandom | tr -d ' ')" "$@"
    fi
    parts=$(sbatch --parsable --array="1-$task" "$0" part "$@")
    sbatch --dependency="afterany:${parts%%;*}" "$0" whole "$@"
    ;;
esac
