#!/usr/bin/env bash
# Trains `tiny` on Multi30k, English to German or French, and evaluates it: the figures of docs/results.md.
# Usage: bench/multi30k.sh tok|raw OUTPUT [--to de|fr] [--tests NAMES|none] [--OPTION VALUE ... of gloss train]
#
# tok: normalised, lower-cased, tokenised text; BLEU of the tokens as they stand, as published (test2016: 41.02
#   for German, 61.80 for French).
# raw: text as people write it; detokenised sacreBLEU (13a).
# Beam 5, the last ten checkpoints averaged. Given again, it goes on where it was, so that the recipe may run in
# pieces: bench/multi30k.sh tok models/m30k --minutes 60, and later the same with more minutes or none.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

[[ $# -ge 2 && $(($# % 2)) -eq 0 ]] || die "it needs tok or raw, an output folder, and options in pairs; see --help"
kind=$1 output=$2 to=de tests="test_2016_flickr test_2017_flickr test_2017_mscoco"
shift 2
case $kind in
  tok) folder=multi30k/tok infix=.lc.norm.tok tokenize=none ;;
  raw) folder=multi30k infix= tokenize=13a ;;
  *) die "'$kind' is neither tok nor raw" ;;
esac

# The published recipe is 8,000 updates of about 8,000 tokens at a peak rate of 0.005. Half the batch, twice the
# updates and the rate divided by sqrt(2) read the same text at the same cost, and a save or a stop comes sooner.
declare -A recipe=(
  [preset]=tiny [vocab-size]=10000 [dropout]=0.3 [label-smoothing]=0.1
  [batch-tokens]=4096 [max-updates]=16000 [learning-rate]=0.0035 [warmup]=2000
  [adam-beta1]=0.9 [adam-beta2]=0.98 [adam-epsilon]=1e-8 [clip-norm]=5
  [average]=10 [patience]=0 [seed]=1
)
while [[ $# -gt 0 ]]; do
  [[ $1 == --* ]] || die "expected an option of gloss train, not '$1'"
  case $1 in
    --to) to=$2 ;;
    --tests) tests=$2 ;;
    *) recipe[${1#--}]=$2 ;;
  esac
  shift 2
done
[[ $to == de || $to == fr ]] || die "--to is de or fr, not '$to'"
[[ $tests != none ]] || tests=
options=()
for name in $(printf '%s\n' "${!recipe[@]}" | sort); do options+=("--$name" "${recipe[$name]}"); done

need_gloss
make_work
for name in train val $tests; do unpack "$folder" "$name$infix.en" "$name$infix.$to"; done
machine

show() {
  printf '+ gloss'
  printf ' %s' "${@//$work\//}"
  printf '\n'
}
command=(train --train "$work/train$infix.en" "$work/train$infix.$to" --valid "$work/val$infix.en"
  "$work/val$infix.$to" --output "$output" "${options[@]}")
show "${command[@]}"
"$gloss" "${command[@]}"

echo "minutes, updates and perplexity of each validation:"
python3 - "$output/train.jsonl" <<'PYTHON'
import json, sys
for entry in map(json.loads, open(sys.argv[1])):
    if "valid_perplexity" in entry:
        print(f"{entry['seconds'] / 60:8.1f} {entry['update']:7d} {entry['valid_perplexity']:9.3f}")
PYTHON
for name in $tests; do
  command=(evaluate "$output" --source "$work/$name$infix.en" --reference "$work/$name$infix.$to"
    --tokenize "$tokenize" --beam 5)
  show "${command[@]}"
  "$gloss" "${command[@]}"
done
