#!/usr/bin/env bash
# Standard error that nobody can read, readers that leave, terminals that close, limits of the system.
source "$TESTS_CLI/common.sh"

tiny_model model
train() {
  "$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso --d-model 16 \
    --encoder-layers 1 --decoder-layers 1 --encoder-heads 2 --decoder-heads 2 --encoder-ff 32 --decoder-ff 32 \
    --vocab-size 150 --batch-tokens 300 --patience 0 --validate-every 20 --output "$@"
}
updates() { grep -c valid_perplexity "$1/train.jsonl"; }

# What cannot be said changes no status and no result.
for nowhere in /dev/full closed; do
  status=0
  if [[ $nowhere == closed ]]; then
    "$GLOSS" translate nowhere 2>&- || status=$?
  else
    "$GLOSS" translate nowhere 2>"$nowhere" || status=$?
  fi
  expect_equal "status of a failure with standard error $nowhere" $status 1
done
"$GLOSS" score model --source dates/test.src --target dates/test.iso --output scores 2>&- ||
  fail "score with a closed standard error"
expect_equal "scores" "$(wc -l <scores)" 20
train full --max-updates 60 2>/dev/full || fail "train with a full standard error"
expect_equal "validations" "$(updates full)" 3

# Who reads the messages leaves: the training goes on to its end.
train left --max-updates 60 2>&1 | head -n 1 >/dev/null || true
[[ ${PIPESTATUS[0]} -eq 0 ]] || fail "train ended with ${PIPESTATUS[0]} when its reader left"
expect_equal "validations" "$(updates left)" 3
cmp full/model.safetensors left/model.safetensors || fail "a reader that leaves changed the model"

# A closed terminal saves and leaves, unless it was asked to be ignored.
train hung 2>log & pid=$!
until grep -q 'update 20:' log; do sleep 0.05; done
kill -HUP "$(pgrep -P $pid -x gloss || echo $pid)"
status=0
wait $pid || status=$?
expect_equal "status after SIGHUP" $status 129
grep -qE 'interrupted after update [0-9]+: the same command goes on' log || fail "$(cat log)"
[[ -s hung/training/state.safetensors ]] || fail "SIGHUP saved nothing"

# A limit on the size of files is a failure with a sentence, and what was there stays.
echo before >out.txt
status=0
(ulimit -f 8 && yes a | head -n 20000 | "$GLOSS" translate model --max-length 4 --beam 1 --output out.txt 2>stderr.txt) ||
  status=$?
expect_equal "status at the limit" $status 1
grep -q 'ulimit -f' stderr.txt || fail "$(cat stderr.txt)"
expect_equal "the file that was there" "$(cat out.txt)" before
