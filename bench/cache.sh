#!/usr/bin/env bash
# The cache of keys and values: what it must not change. What it saves is in bench/run positions-tiny.
# Usage: bench/cache.sh MODEL [--source FILE] [--lines N]
#
# Translates N lines (100) with and without the cache: texts must be equal and scores must differ by 1e-5 at most.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

[[ $# -ge 1 ]] || die "which model? see --help"
model=$1 source= lines=100
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
exit $failed
