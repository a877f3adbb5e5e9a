#!/usr/bin/env bash
# The cache of keys and values: what it must not change, and what it must save.
# Usage: bench/cache.sh MODEL [--source FILE] [--lines N]
#
# First translates N lines (100) with and without the cache: texts must be equal and scores must differ by 1e-5 at
# most. Then times greedy decoding of one sentence forced to several lengths, one thread: a token at position 400
# is (time of 450 tokens - time of 350) / 100, one at position 50 (time of 75 - time of 25) / 50. Each time is
# the least of several rounds, which alternate, of many copies of the sentence with batch 1.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

[[ $# -ge 1 ]] || die "which model? see --help"
model=$1 source= lines=100 rounds=7 copies=20
shift
while [[ $# -gt 0 ]]; do
  case $1 in
    --source) source=$2 ;;
    --lines) lines=$2 ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift 2
done
need_gloss
make_work
first_lines "$lines" "$source" >"$work/text"
machine

"$gloss" translate "$model" "$work/text" --json >"$work/cached"
"$gloss" translate "$model" "$work/text" --json --no-cache >"$work/uncached"
python3 - "$work/cached" "$work/uncached" <<'PYTHON' || failed=1
import json, sys
cached, uncached = ([json.loads(line) for line in open(name, encoding="utf-8")] for name in sys.argv[1:])
assert len(cached) == len(uncached) > 0
texts = sum(a["translation"] == b["translation"] for a, b in zip(cached, uncached))
worst = max(abs(a["translations"][0]["score"] - b["translations"][0]["score"]) for a, b in zip(cached, uncached))
rows = [sum(one["key_value_rows"] for one in side) for side in (cached, uncached)]
good = texts == len(cached) and worst <= 1e-5
print(f"with and without cache: {texts} of {len(cached)} texts equal, scores differ by {worst:.1e} at most "
      f"(needed: all, 1e-5; {'yes' if good else 'NO'}); key/value rows a layer {rows[0]} and {rows[1]}")
sys.exit(not good)
PYTHON

line=$(head -n 1 "$work/text")
for ((i = 0; i < copies; ++i)); do printf '%s\n' "$line"; done >"$work/copies"
force() {
  "$gloss" translate "$model" "$work/copies" --beam 1 --min-length "$1" --max-length "$1" --batch 1 --threads 1 \
    --workers 1 --output "$work/out"
}
declare -A least
for ((round = 0; round < rounds; ++round)); do
  for length in 25 75 350 450; do
    took=$(seconds force "$length")
    least[$length]=$(calculate "${least[$length]:-1e9} < $took ? ${least[$length]:-1e9} : $took")
  done
done
early=$(calculate "1e6 * (${least[75]} - ${least[25]}) / (50 * $copies)")
late=$(calculate "1e6 * (${least[450]} - ${least[350]}) / (100 * $copies)")
ratio=$(calculate "$late / $early")
at_most "$ratio" 1.6
printf 'a token at position 50: %.1f us, at position 400: %.1f us, ratio %.2f (needed: 1.6; %s)\n' \
  "$early" "$late" "$ratio" "$verdict"
exit $failed
