#!/usr/bin/env bash
# What a batch saves where the weights are larger than the caches: batch 64 against batch 1, one worker of one thread.
# Usage: bench/batch_opus.sh [--lines N] [--length N] [--rounds N] [--beam N]
#   GLOSS_PEERS_VENV  a Python environment with transformers and sentencepiece, to make the model
#
# The model has the size of the published OPUS-MT ones (d_model 512, 6 + 6 layers, 58,101 pieces) and random weights
# (peers/make_opus_like.py): what it writes is noise, so every translation is cut to the same length, 14 pieces. Whole
# runs are timed, start-up included, greedily and with the beam, in turns; the fastest of the rounds counts.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

lines=192 length=14 rounds=3 beam=5
while [[ $# -gt 0 ]]; do
  case $1 in
    --lines) lines=$2 ;;
    --length) length=$2 ;;
    --rounds) rounds=$2 ;;
    --beam) beam=$2 ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift 2
done
need_gloss
python=${GLOSS_PEERS_VENV:?set it to a Python environment with transformers and sentencepiece}/bin/python3
make_work
"$python" "$shared/peers/make_opus_like.py" "$work/opus" >/dev/null 2>"$work/error" || die "$(tail -n 1 "$work/error")"
first_lines "$lines" "" >"$work/text"
machine

run() {
  "$gloss" translate "$work/opus" "$work/text" --beam "$1" --batch "$2" --threads 1 --workers 1 \
    --min-length "$length" --max-length "$length" --output "$work/out.$1.$2"
}
for width in 1 "$beam"; do
  declare -A fastest=([1]=1e9 [64]=1e9)
  for ((round = 0; round < rounds; ++round)); do
    for batch in 1 64; do
      took=$(seconds run "$width" "$batch")
      fastest[$batch]=$(calculate "${fastest[$batch]} < $took ? ${fastest[$batch]} : $took")
    done
  done
  cmp -s "$work/out.$width.1" "$work/out.$width.64" || die "beam $width: batch 1 and 64 give different texts"
  ratio=$(calculate "${fastest[1]} / ${fastest[64]}") wanted=
  if [[ $width -eq 1 ]]; then
    at_least "$ratio" 4
    wanted=" (needed: 4; $verdict)"
  fi
  printf 'beam %d, %d sentences of %d pieces: %.1f s with batch 1, %.1f s with batch 64, ratio %.2f%s\n' \
    "$width" "$lines" "$length" "${fastest[1]}" "${fastest[64]}" "$ratio" "$wanted"
done
exit $failed
