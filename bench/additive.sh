#!/usr/bin/env bash
# Additive attention, forward and backward, in turns with the same in PyTorch: milliseconds, and their ratio.
# Usage: bench/additive.sh [--rounds N] [--seconds S] [--threads N] [--sentences "64 128 256"] [--order sorted|mixed]
#        [--d-a N] [--d-h N] [--no-compile]
#   GLOSS_PEERS_VENV  a Python environment with torch
#   ADDITIVE_BENCH    our side (build/release/bin/additive_bench, made with -DGLOSS_BENCH=ON)
#
# Batches of sentences of Multi30k English-German, lengths in words and an end symbol. `sorted` (the default) takes the
# middle one of 20 batches sorted by length, which costs PyTorch next to no padding, `mixed` the first sentences as they
# come. `step` makes one call a time step with one query for each sentence still alive, and walks back through all of
# them, as training a recurrent decoder does; `all` gives all queries to one call. In each round ours and the fastest of
# three ways to write it in PyTorch (see additive_torch.py) run one after another, each for --seconds.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

rounds=5 seconds=1 threads=2 sentences="64 128 256" order=sorted d_a=256 d_h=512 compile=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --no-compile)
      compile=(--no-compile)
      shift
      continue
      ;;
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --threads) threads=$2 ;;
    --sentences) sentences=$2 ;;
    --order) order=$2 ;;
    --d-a) d_a=$2 ;;
    --d-h) d_h=$2 ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift 2
done
[[ $order == sorted || $order == mixed ]] || die "--order is sorted or mixed, not '$order'"
program=${ADDITIVE_BENCH:-$repo/build/release/bin/additive_bench}
[[ -x $program ]] || die "there is no program at $program: build it (cmake --preset release -DGLOSS_BENCH=ON && cmake --build --preset release --target additive_bench) or set ADDITIVE_BENCH"
need_gloss
python=${GLOSS_PEERS_VENV:?set it to a Python environment with torch}/bin/python3
make_work
unpack multi30k/tok train.lc.norm.tok.en train.lc.norm.tok.de
machine

paste -d ' ' <(awk '{ print NF + 1 }' "$work/train.lc.norm.tok.en") \
  <(awk '{ print NF + 1 }' "$work/train.lc.norm.tok.de") >"$work/lengths"
batches=()
for count in $sentences; do
  batch=$work/$order-$count
  if [[ $order == sorted ]]; then
    head -n $((20 * count)) "$work/lengths" | sort -n -k 1,1 -k 2,2 |
      sed -n "$((10 * count + 1)),$((11 * count))p" >"$batch"
  else
    head -n "$count" "$work/lengths" >"$batch"
  fi
  [[ $(wc -l <"$batch") -eq $count ]] || die "Multi30k has too few sentences for batches of $count"
  batches+=("$batch")
done

PYTHONDONTWRITEBYTECODE=1 "$python" "$bench/additive_torch.py" "${batches[@]}" --bench "$program" \
  --rounds "$rounds" --seconds "$seconds" --threads "$threads" --d-a "$d_a" --d-h "$d_h" "${compile[@]}"
