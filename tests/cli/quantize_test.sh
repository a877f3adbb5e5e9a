#!/usr/bin/env bash
# gloss quantize, and --precision where models are opened.
source "$TESTS_CLI/common.sh"

tiny_model model

# Rounded in the folder or on opening: the same lines. In float32 the rounded numbers are plain ones.
"$GLOSS" quantize model small 2>said.txt || fail "$(cat said.txt)"
grep -q '^int8: .* MB, .* MB before$' said.txt || fail "$(cat said.txt)"
translate() { "$GLOSS" translate "$@" --max-length 12 --scores dates/test.src; }
translate small >stored.txt
translate model --precision int8 | diff - stored.txt || fail "stored and on opening differ"
translate small --precision int8 --batch 3 --threads 1 | diff - stored.txt || fail "company changes something"
translate small --precision float32 >plain.txt
cmp -s plain.txt stored.txt && fail "--precision float32 changes nothing"
"$GLOSS" score small --source dates/test.src --target dates/test.iso >/dev/null 2>&1 || fail "score"
"$GLOSS" evaluate small --source dates/test.src --reference dates/test.iso --max-length 12 >/dev/null || fail "evaluate"
"$GLOSS" info small | grep -q 'weight_precision *int8' || fail "info does not say it: $("$GLOSS" info small)"
"$GLOSS" quantize small smaller 2>/dev/null || fail "a rounded folder can be rounded"
translate smaller | diff - stored.txt || fail "rounding twice is not rounding once"

# On a text: what it costs, and nothing is written where it costs too much.
"$GLOSS" quantize model compared --source dates/test.src --reference dates/test.iso --limit 100 2>said.txt
grep -q '^chrF on dates/test.src: [0-9.]*, [0-9.]* before, a change of [+-][0-9.]*$' said.txt || fail "$(cat said.txt)"
[[ -e compared/config.json ]] || fail "nothing was written"

# Bad input.
expect_failure 1 "small exists already" "$GLOSS" quantize model small
expect_failure 1 "nowhere" "$GLOSS" quantize nowhere other
expect_failure 2 "int8" "$GLOSS" quantize model other --precision int4
expect_failure 2 "belong together" "$GLOSS" quantize model other --source dates/test.src
expect_failure 2 "add --source" "$GLOSS" quantize model other --limit 1
expect_failure 2 "float32, bfloat16, int8" "$GLOSS" translate model --precision half dates/test.src
expect_failure 2 "bfloat16 needs AVX512_BF16" "$GLOSS" translate model --isa avx2 --precision bfloat16 dates/test.src
expect_failure 1 "/dev/full" "$GLOSS" quantize model /dev/full/other
[[ ! -e other ]] || fail "a refused command left a folder"
