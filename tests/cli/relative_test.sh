#!/usr/bin/env bash
# Relative positions from the command line to the folder and back: train, translate, score, info.
source "$TESTS_CLI/common.sh"

tiny_model sinusoids
"$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso --output model \
  --vocab-size 200 --d-model 16 --encoder-layers 2 --decoder-layers 2 --encoder-heads 2 --decoder-heads 4 \
  --encoder-ff 32 --decoder-ff 32 --max-updates 20 --batch-tokens 200 --positions relative 2>train.log ||
  fail "training failed: $(cat train.log)"
expect_failure 2 "--positions must be .*halves, interleaved.*relative.*not 'rotary'" \
  "$GLOSS" train --train a b --valid c d --output e --positions rotary

# With the cache and without it: the same text, and scores within 1e-5; in any company the same bits.
head -n 8 dates/test.src >eight.src
translate() { "$GLOSS" translate model --max-length 12 --scores eight.src "$@"; }
translate >cached.txt
translate --batch 1 --threads 1 | diff - cached.txt || fail "the company changes something"
translate --no-cache >whole.txt
diff <(cut -f 1 cached.txt) <(cut -f 1 whole.txt) || fail "--no-cache changes the text"
paste <(cut -f 2 cached.txt) <(cut -f 2 whole.txt) |
  awk '{ d = $1 - $2; if (d < -1e-5 || d > 1e-5) exit 1 }' || fail "--no-cache changes scores"

# The folder says what it is, so that no program of another kind takes it for Marian.
python3 - model/config.json sinusoids/config.json <<'PYTHON' || fail "$(cat model/config.json)"
import json, sys
relative, marian = (json.load(open(name)) for name in sys.argv[1:])
assert relative["model_type"] == "gloss_relative" and "architectures" not in relative
assert relative["position_layout"] == "relative"
assert relative["relative_attention_num_buckets"] == 32 and relative["relative_attention_max_distance"] == 128
assert marian["model_type"] == "marian" and not any("relative" in key for key in marian)
PYTHON
"$GLOSS" info model >info.txt
grep -qE '^  position_layout +relative$' info.txt || fail "$(cat info.txt)"
grep -qE '^  relative_attention_num_buckets +32$' info.txt || fail "$(cat info.txt)"
# 32 buckets for 2 heads of the encoder and 4 of the decoder.
python3 - <("$GLOSS" info model --json) <("$GLOSS" info sinusoids --json) <<'PYTHON' || fail "parameters are counted otherwise"
import json, sys
relative, plain = (json.load(open(name))["parameters"] for name in sys.argv[1:])
assert relative["encoder"] == plain["encoder"] + 32 * 2 and relative["decoder"] == plain["decoder"] + 32 * 4
PYTHON

# A tensor that is not there is named.
python3 - <<'PYTHON'
import json, struct
data = open("model/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = data[8:8 + n].replace(b"model.encoder.relative_attention_bias", b"model.encoder.relative_attention_bees")
open("model/model.safetensors", "wb").write(data[:8] + header + data[8 + n:])
PYTHON
expect_failure 1 "'model.encoder.relative_attention_bias.weight' is missing" "$GLOSS" translate model eight.src
