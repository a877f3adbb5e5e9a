#!/usr/bin/env bash
# Training speed, in turns with PyTorch on the same machine: target tokens a second, median of several runs.
# Usage: bench/train_speed.sh [--rounds N] [--updates N] [--size tiny|small|base|rnn-small] [--threads N]
#        [--batch-tokens N] [--gloss-batch-tokens N]
#   GLOSS_PEERS_VENV  a Python environment with torch and sentencepiece, and but for rnn-small transformers
#
# Both train on Multi30k en-de with 8,000 pieces, dropout 0.1 and label smoothing 0.1. In each round gloss and
# two models in PyTorch do the same number of updates, one after another; the faster of the two counts. For a
# Transformer they are those of peers/torch_train_speed.py (lean, and transformers' MarianMT), for rnn-small those
# of rnn_train_torch.py (eager and lean), without layer norm as ours. The number of everybody's parameters is
# printed; with rnn-small it must be the same.
# Nobody's vocabulary, start-up and first updates are timed: PyTorch's scripts leave out three updates, here the
# first entry of train.jsonl is left out (two seconds).
# Tokens are those of the target with its end symbol, without padding. PyTorch's scripts count the padded longer
# side of a batch, gloss the target's tokens: --gloss-batch-tokens makes the updates alike in size.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

rounds=5 updates=60 size=tiny threads=2 batch_tokens=4096 gloss_batch_tokens=
while [[ $# -gt 0 ]]; do
  case $1 in
    --rounds) rounds=$2 ;;
    --updates) updates=$2 ;;
    --size) size=$2 ;;
    --threads) threads=$2 ;;
    --batch-tokens) batch_tokens=$2 ;;
    --gloss-batch-tokens) gloss_batch_tokens=$2 ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift 2
done
need_gloss
python=${GLOSS_PEERS_VENV:?set it to a Python environment with torch, transformers and sentencepiece}/bin/python3
peers=$shared/peers
[[ -e $peers/common.py ]] || die "there is no $peers/common.py: set GLOSS_SHARED to the folder that holds peers/"
make_work
case $size in
  tiny | small | base) peer=("$peers/torch_train_speed.py") ways=(lean hf) ;;
  rnn-small)
    # Our pieces of the round, which come before its peers.
    peer=("$bench/rnn_train_torch.py" --vocabulary "$work/model/source.spm") ways=(eager lean)
    ;;
  *) die "--size is tiny, small, base or rnn-small, not '$size'" ;;
esac
unpack multi30k train.en train.de val.en val.de
machine

# The entries of the training log after the first: their tokens over their seconds, and the mean batch.
speed_of_log() {
  python3 - "$1" <<'PYTHON'
import json, sys
entries = [e for e in map(json.loads, open(sys.argv[1])) if "target_tokens_per_second" in e]
if len(entries) < 2:
    sys.exit("train_speed.sh: the run was too short to leave its start out; give more --updates")
tokens = seconds = 0.0
for before, entry in zip(entries, entries[1:]):
    span = entry["seconds"] - before["seconds"]
    tokens += entry["target_tokens_per_second"] * span
    seconds += span
print(f"{tokens / seconds:.0f} {tokens / (entries[-1]['update'] - entries[0]['update']):.0f}")
PYTHON
}

run_gloss() {
  rm -rf "$work/model"
  "$gloss" train --train "$work/train.en" "$work/train.de" --valid "$work/val.en" "$work/val.de" \
    --output "$work/model" --preset "$size" --vocab-size 8000 \
    --batch-tokens "${gloss_batch_tokens:-$batch_tokens}" --dropout 0.1 \
    --label-smoothing 0.1 --average 1 --max-updates $((updates + 3)) --validate-every 1000000 \
    --threads "$threads" >"$work/gloss.log" 2>&1 || {
    tail -n 5 "$work/gloss.log" >&2
    die "gloss train failed"
  }
  speed_of_log "$work/model/train.jsonl"
}

# run_torch WAY: target tokens a second, and the number of parameters as the script has it.
run_torch() {
  PYTHONPATH=$peers PYTHONDONTWRITEBYTECODE=1 "$python" "${peer[@]}" --size "$size" --steps "$updates" --impl "$1" \
    --threads "$threads" --batch-tokens "$batch_tokens" 2>"$work/torch.log" |
    sed -n 's/.*: \([0-9]*\) target tok.*parameters \(.*\)/\1 \2/p' | grep . || {
    tail -n 5 "$work/torch.log" >&2
    die "$(basename "${peer[0]}") failed"
  }
}

parameters_of_gloss() {
  "$gloss" info "$work/model" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["parameters"]["total"])'
}

for ((round = 1; round <= rounds; ++round)); do
  read -r ours tokens < <(run_gloss)
  echo "$ours" >>"$work/gloss"
  parameters=$(parameters_of_gloss)
  line="round $round: gloss $ours ($tokens target tokens an update)" sizes="parameters: gloss $parameters"
  for way in "${ways[@]}"; do
    read -r theirs their_parameters < <(run_torch "$way")
    echo "$theirs" >>"$work/$way"
    line+=", PyTorch $way $theirs" sizes+=", $way $their_parameters"
    [[ $size != rnn-small || $their_parameters == "$parameters" ]] ||
      die "the models are not of one size: gloss has $parameters parameters, $way $their_parameters"
  done
  ((round > 1)) || echo "$sizes"
  echo "$line"
done

python3 - "$work" "${ways[@]}" <<'PYTHON'
import pathlib, statistics, sys
work, ways = pathlib.Path(sys.argv[1]), sys.argv[2:]
titles = {"gloss": "gloss", "eager": "PyTorch, eager", "lean": "PyTorch, lean", "hf": "transformers"}
runs = {name: [int(x) for x in (work / name).read_text().split()] for name in ("gloss", *ways)}
print(f"{'target tokens/s':<20}{'median':>9}{'min':>9}{'max':>9}")
for name, values in runs.items():
    print(f"{titles[name]:<20}{statistics.median(values):>9.0f}{min(values):>9}{max(values):>9}")
faster = max(ways, key=lambda name: statistics.median(runs[name]))
ratios = [a / b for a, b in zip(runs["gloss"], runs[faster])]
print(f"gloss / the faster one ({faster}): median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to "
      f"{max(ratios):.2f} (needed: 1.5)")
PYTHON
