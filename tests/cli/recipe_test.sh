#!/usr/bin/env bash
# docs/training.md shows the recipe for Multi30k that bench/multi30k.sh runs, to the last option.
source "$TESTS_CLI/common.sh"
root=$TESTS_CLI/../..

# An option a line: "--warmup 2000"
sed -n '/^declare -A recipe=(/,/^)/p' "$root/bench/multi30k.sh" | grep -oE '\[[a-z0-9-]+\]=[^] ]+' |
  sed -E 's/^\[(.*)\]=/--\1 /' | sort >script.txt
sed -n '/^Multi30k/,/^Some/p' "$root/docs/training.md" | sed -n '/^gloss train/,/^```/p' |
  grep -oE -- '--[a-z0-9-]+ [^ ]+' | sort >docs.txt
[[ $(wc -l <script.txt) -ge 10 ]] || fail "the recipe in bench/multi30k.sh was not found: $(cat script.txt)"
diff script.txt docs.txt || fail "docs/training.md (>) shows another recipe than bench/multi30k.sh (<)"
grep -q 'bench/multi30k\.sh' "$root/docs/training.md" || fail "docs/training.md does not name bench/multi30k.sh"

# And it is a command that gloss takes.
read -ra options <<<"$(tr '\n' ' ' <docs.txt)"
expect_failure 1 'none.src' "$GLOSS" train --train none.src none.tgt --valid none.src none.tgt --output new \
  "${options[@]}"
