#!/usr/bin/env bash
# gloss info: parameters by part, the memory of the cache, and the text that people read.
source "$TESTS_CLI/common.sh"

tiny_model model
lengths=(--source-length 7 --target-length 5 --batch 3 --beam 2)
"$GLOSS" info model "${lengths[@]}" --json >info.json
for tie in tied untied; do "$GLOSS" info "$TESTS_CLI/../golden/hf-marian-$tie" --json >$tie.json; done

# Parameters by part, counted from the numbers of the architecture.
python3 - info.json tied.json untied.json <<'PYTHON' || fail "parameters are counted otherwise"
import json, sys
for name in sys.argv[1:]:
    info = json.load(open(name))
    c, parts = info["config"], dict(info["parameters"])
    d = c["d_model"]
    norm, attention = 2 * d, 4 * (d * d + d)
    stack = lambda side, attentions: c[f"{side}_layers"] * (
        attentions * (attention + norm) + 2 * d * c[f"{side}_ffn_dim"] + c[f"{side}_ffn_dim"] + d + norm)
    tables = c["decoder_vocab_size"] * d
    if not c["share_encoder_decoder_embeddings"]:
        tables += c["vocab_size"] * d
    output = c["decoder_vocab_size"] * (1 if c["tie_word_embeddings"] else 1 + d)
    want = {"embeddings": tables, "encoder": stack("encoder", 1), "decoder": stack("decoder", 2), "output": output}
    total = parts.pop("total")
    assert parts == want, (name, parts, want)
    assert total == sum(parts.values()), (name, total, parts)
PYTHON

# The cache, by the formula of docs/command-line.md; 1 + 4 x 2 rows of 16 a sentence are in use.
python3 - info.json <<'PYTHON' || fail "info counts other bytes: $(cat info.json)"
import json, sys
cache, row = json.load(open(sys.argv[1]))["cache"], 2 * 4 * 2 * 16
assert cache["self_attention_bytes"] == row * 5 * 3 * 2 and cache["cross_attention_bytes"] == row * 7 * 3
assert cache["payload_bytes"] == 2 * 4 * (2 * 5 * 16 * 3 * 2 + 2 * 7 * 16 * 3)
assert cache["shared_bytes"] == row * 3
assert cache["table_bytes"] == 4 * 5 * 3 * 2 and cache["spare_bytes"] == row * 3 * (16 - 9)
assert [cache[key] for key in ("source_length", "target_length", "batch", "beam", "layers")] == [7, 5, 3, 2, 2]
PYTHON
# bfloat16 takes half of it; indices stay what they are.
"$GLOSS" info model "${lengths[@]}" --cache-precision bfloat16 --json >half.json
python3 - info.json half.json <<'PYTHON' || fail "bfloat16 takes other bytes: $(cat half.json)"
import json, sys
whole, half = (json.load(open(name))["cache"] for name in sys.argv[1:])
assert (whole["precision"], half["precision"]) == ("float32", "bfloat16")
for key in ("self_attention", "cross_attention", "payload", "shared", "spare"):
    assert 2 * half[key + "_bytes"] == whole[key + "_bytes"] > 0, key
assert half["table_bytes"] == whole["table_bytes"]
PYTHON
"$GLOSS" info model "${lengths[@]}" --cache-precision bfloat16 | grep -q 'batch 3, beam 2, bfloat16$' ||
  fail "the text does not say it"
# The greatest numbers that are allowed are told or refused, and quickly.
most=(--source-length 16777216 --target-length 16777216 --batch 65536)
"$GLOSS" info model "${most[@]}" --beam 4096 --json >most.json
python3 - most.json <<'PYTHON' || fail "great numbers: $(cat most.json)"
import json, sys
cache, row = json.load(open(sys.argv[1]))["cache"], 2 * 4 * 2 * 16
assert cache["self_attention_bytes"] == row * 2**24 * 2**16 * 2**12
assert cache["payload_bytes"] == row * 2**40 * (2**12 + 1) and cache["spare_bytes"] >= 0
PYTHON
"$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso --output wide \
  --vocab-size 200 --d-model 256 --encoder-layers 1 --decoder-layers 2 --encoder-ff 8 --decoder-ff 8 \
  --max-updates 1 --batch-tokens 50 2>train.log || fail "training failed: $(cat train.log)"
expect_failure 2 'a key/value cache of 65536 sentences with 4096 hypotheses each, 16777216 source and 16777216 target pieces' \
  "$GLOSS" info wide "${most[@]}" --beam 4096
"$GLOSS" info wide "${most[@]}" --beam 100 >/dev/null || fail "what fits is refused"

# The text has the same numbers.
"$GLOSS" info model "${lengths[@]}" >info.txt
python3 - info.json info.txt <<'PYTHON' || fail "the text says something else: $(cat info.txt)"
import json, sys
info, lines = json.load(open(sys.argv[1])), open(sys.argv[2], encoding="utf-8").read().splitlines()
assert lines[0] == "model"
row = lambda name, value: f"  {name:<24} {value:>16}"
cache = info["cache"]
wanted = ["parameters"] + [row(part, f"{count:,}") for part, count in info["parameters"].items()]
wanted += ["architecture", row("model_type", "marian"), row("d_model", 16), row("tie_word_embeddings", "true")]
wanted += ["key/value cache in bytes: 2 layers, 7 + 5 pieces, batch 3, beam 2"]
wanted += [row("self-attention", f"{cache['self_attention_bytes']:,}"),
           row("cross-attention", f"{cache['cross_attention_bytes']:,}"),
           row("together", f"{cache['payload_bytes']:,}"),
           row("less shared first tokens", f"{cache['shared_bytes']:,}"),
           row("tables + spare capacity", f"{cache['table_bytes']:,}") + f" + {cache['spare_bytes']:,}"]
wanted += ["files in bytes"] + [row(name, f"{size:,}") for name, size in info["files"].items()]
wanted += ["training", row("updates", info["training"]["updates"])]
at = 0
for line in wanted:
    assert line in lines[at:], (line, at)
    at = lines.index(line, at) + 1
assert info["parameters"]["total"] >= 10_000, "no number needs a comma"
PYTHON
for file in config.json model.safetensors vocab.json; do
  python3 -c 'import json, sys; print(json.load(open("info.json"))["files"][sys.argv[1]])' $file |
    diff - <(stat -c %s model/$file) || fail "the size of $file"
done
# A folder that says nothing of its training has no such heading.
cp -r model bare && rm bare/gloss.json
"$GLOSS" info bare >bare.txt
grep -q '^training' bare.txt && fail "a training without gloss.json" || true
grep -q '^parameters' bare.txt || fail "$(cat bare.txt)"

# The recurrent model keeps the source and no target tokens: h_j and U_a h_j, 16 + 2 x 16 numbers a piece.
"$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso --output recurrent \
  --vocab-size 200 --preset rnn-small --embedding 16 --hidden 16 --attention 16 --maxout 16 --max-updates 1 \
  --batch-tokens 50 2>train.log || fail "training failed: $(cat train.log)"
"$GLOSS" info recurrent "${lengths[@]}" --json >recurrent.json
python3 - recurrent.json <<'PYTHON' || fail "the recurrent model's cache: $(cat recurrent.json)"
import json, sys
cache = json.load(open(sys.argv[1]))["cache"]
assert cache["layers"] == 1 and cache["cross_attention_bytes"] == cache["payload_bytes"] == 4 * (16 + 2 * 16) * 7 * 3
assert all(cache[key + "_bytes"] == 0 for key in ("self_attention", "shared", "table", "spare")), cache
PYTHON
"$GLOSS" info recurrent "${lengths[@]}" >recurrent.txt
for line in "model_type rnn_search" "embedding_size 16" "hidden_size 16" "attention_size 16" "maxout_size 16" \
  "transition conditional" "reset_gate after" "layer_norm false"; do
  grep -qE "^  ${line/ / +}\$" recurrent.txt || fail "no line '$line': $(cat recurrent.txt)"
done
grep -A 3 'cache in bytes: 1 layer, 7 + 5 pieces, batch 3, beam 2$' recurrent.txt >cache.txt || fail "$(cat recurrent.txt)"
grep -q '^  cross-attention ' cache.txt || fail "$(cat recurrent.txt)"
grep -qE 'self-attention|tables' recurrent.txt && fail "lines that the model has no use for: $(cat recurrent.txt)" || true
