#!/usr/bin/env bash
# The recurrent model from the command line to the folder and back: train in pieces, translate, score, evaluate, info.
source "$TESTS_CLI/common.sh"

"$GLOSS_DATES" --output dates --seed 5 --train 300 --valid 20 --test 20 --heldout 20 2>/dev/null
# train OUTPUT OPTIONS...
train() {
  "$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso --output "$1" \
    --vocab-size 200 --preset rnn-small --embedding 16 --hidden 16 --attention 16 --maxout 16 --dropout 0.2 \
    --context-dropout 0.1 --output-dropout 0.1 --batch-tokens 200 --patience 0 "${@:2}" 2>train.log ||
    fail "training failed: $(cat train.log)"
}

# Twenty updates are twenty, in one piece and in two, with one thread and with two.
train whole --max-updates 20 --threads 1
train parts --max-updates 7 --threads 2
train parts --max-updates 20 --threads 1
cmp whole/model.safetensors parts/model.safetensors || fail "a run in two pieces gives another model"

# With the cache and without it, in any company: the same texts and scores, for every piece of every hypothesis.
head -n 12 dates/test.src >twelve.src
translate() { "$GLOSS" translate whole --max-length 12 --beam 4 --n-best 3 --scores twelve.src "$@"; }
translate >plain.txt
expect_equal "hypotheses" "$(wc -l <plain.txt)" 36
for options in "--batch 1 --threads 1" "--batch 5 --threads 2" "--workers 2 --threads 1" "--no-cache"; do
  # shellcheck disable=SC2086
  translate $options | diff - plain.txt || fail "$options changes something"
done

# Among likely pieces: other scores, and nothing else changes them.
"$GLOSS" shortlist whole --source dates/train.src --target dates/train.iso --output likely.lex 2>/dev/null
likely() { translate --shortlist likely.lex --shortlist-first 5 --shortlist-best 3 "$@"; }
likely >likely.txt
cmp -s likely.txt plain.txt && fail "--shortlist changes no score" || true
for options in "--batch 1 --threads 1" "--batch 5 --threads 2" "--workers 2 --threads 2" "--no-cache"; do
  # shellcheck disable=SC2086
  likely $options | diff - likely.txt || fail "$options changes something among likely pieces"
done
translate --shortlist likely.lex --shortlist-first 100000 | diff - plain.txt || fail "a shortlist of all pieces changes something"

expect_failure 2 "no cache of keys and values to round: leave out --cache-precision" \
  "$GLOSS" translate whole --cache-precision bfloat16 twelve.src
expect_failure 2 "leave out --cache-precision" "$GLOSS" info whole --cache-precision bfloat16

# Given translations: the same scores for any number of threads, and they add up to the perplexity.
head -n 12 dates/test.iso >twelve.iso
score() { "$GLOSS" score whole --source twelve.src --target twelve.iso "$@"; }
score --threads 1 >scores.txt 2>perplexity.txt
score --threads 2 2>/dev/null | diff - scores.txt || fail "threads change scores"
awk '!($1 < 0) { exit 1 }' scores.txt || fail "a translation is certain: $(cat scores.txt)"
"$GLOSS" evaluate whole --source twelve.src --reference twelve.iso --max-length 12 >evaluated.txt
expect_equal "the perplexity" "$(sed -E 's/.*perplexity[ =]+([0-9.]*[0-9]).*/\1/' perplexity.txt)" \
  "$(sed -n 's/^perplexity = \([0-9.]*\) .*/\1/p' evaluated.txt)"

"$GLOSS" info whole >info.txt
grep -q 'rnn_search' info.txt || fail "$(cat info.txt)"
