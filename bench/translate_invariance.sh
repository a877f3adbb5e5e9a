#!/usr/bin/env bash
# Does a translation depend on its company?
# Usage: bench/translate_invariance.sh MODEL [--source FILE] [--lines N] [--beam N] [--isa "NAME ..."]
#
# Translates the 1,000 sentences of Multi30k's test2016 with batch 1, 7 and 64, in order and shuffled, with 1 and
# 2 threads and workers, on every instruction set of the machine (or those named by --isa). On each, all texts must
# be equal to the byte and all scores (log-probabilities of every piece too) to the bit; avx2 and avx512 must agree
# as well. What a batch saves is in bench/run batch-64-tiny.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

[[ $# -ge 1 ]] || die "which model? see --help"
model=$1 source= lines=1000 beam=5 isas="ssse3 sse4 avx2 avx512"
shift
while [[ $# -gt 0 ]]; do
  case $1 in
    --source) source=$2; shift ;;
    --lines) lines=$2; shift ;;
    --beam) beam=$2; shift ;;
    --isa) isas=$2; shift ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift
done
need_gloss
make_work
first_lines "$lines" "$source" >"$work/in-order"
lines=$(wc -l <"$work/in-order")
# A fixed permutation; column 1 of the order file is the line number that puts it back.
awk 'BEGIN { srand(17) } { print rand() "\t" NR "\t" $0 }' "$work/in-order" | sort -g >"$work/keyed"
cut -f 3- "$work/keyed" >"$work/shuffled"
cut -f 2 "$work/keyed" >"$work/order"
cmp -s "$work/in-order" "$work/shuffled" && die "the shuffled text is the text"
machine

# translate ORDER BATCH THREADS WORKERS OUTPUT: pieces, text, scores and log-probabilities, in the text's order.
# Line numbers, which differ when shuffled, are cut off.
translate() {
  "$gloss" translate "$model" "$work/$1" --beam "$beam" --batch "$2" --threads "$3" --workers "$4" --json |
    sed 's/^{"line":[0-9]*,//' >"$5"
  if [[ $1 == shuffled ]]; then
    paste "$work/order" "$5" | sort -n | cut -f 2- >"$5.sorted"
    mv "$5.sorted" "$5"
  fi
}

variants=(
  "in-order 64 1 1" "in-order 1 1 1" "in-order 7 1 1" "in-order 64 2 1" "in-order 64 2 2" "in-order 7 2 1"
  "in-order 1 2 2" "shuffled 64 1 1" "shuffled 7 2 2" "shuffled 1 1 1"
)
for isa in $isas; do
  export GLOSS_ISA=$isa
  "$gloss" --version >/dev/null 2>&1 || { echo "$isa: not on this machine"; continue; }
  for variant in "${variants[@]}"; do
    read -r order batch threads workers <<<"$variant"
    # shellcheck disable=SC2086
    translate $variant "$work/one"
    if [[ ! -e $work/$isa ]]; then
      mv "$work/one" "$work/$isa"
      [[ $(wc -l <"$work/$isa") -eq $lines ]] || die "$isa: $lines lines went in, $(wc -l <"$work/$isa") came back"
    elif ! cmp -s "$work/$isa" "$work/one"; then
      differ=$(paste -d '\n' "$work/$isa" "$work/one" | awk 'NR % 2 { a = $0; next } a != $0' | wc -l)
      echo "$isa: $differ lines DIFFER with $order, batch $batch, threads $threads, workers $workers"
      failed=1
    fi
  done
  echo "$isa: ${#variants[@]} ways to translate $lines sentences compared"
done
unset GLOSS_ISA
if [[ -e $work/avx2 && -e $work/avx512 ]]; then
  if cmp -s "$work/avx2" "$work/avx512"; then
    echo "avx2 and avx512: equal texts and scores"
  else
    echo "avx2 and avx512 DIFFER"
    failed=1
  fi
fi
exit $failed
