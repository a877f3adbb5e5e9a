#!/usr/bin/env bash
# gloss attend and gloss align, on a Transformer and on a recurrent model: numbers, pictures, bad input.
source "$TESTS_CLI/common.sh"

tiny_model transformer
"$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso --output recurrent \
  --vocab-size 200 --preset rnn-small --embedding 16 --hidden 16 --attention 16 --maxout 16 --layer-norm \
  --max-updates 20 --batch-tokens 200 2>train.log || fail "training failed: $(cat train.log)"
line=$(head -n 1 dates/test.src)

# The two models go through the same commands.
for model in transformer recurrent; do
  "$GLOSS" attend $model "$line" >one.json
  head -n 3 dates/test.src >three.src
  head -n 3 dates/test.iso >three.iso
  "$GLOSS" attend $model --source three.src --target three.iso --output three.json
  python3 - $model one.json three.json <<'PYTHON' || fail "attend $model"
import json, sys
model = sys.argv[1]
for name in sys.argv[2:]:
    for number, line in enumerate(open(name), 1):
        j = json.loads(line)
        assert j["forced"] == (name == "three.json") and j.get("line", 0) == (number if j["forced"] else 0)
        assert j["model_type"] == ("rnn_search" if model == "recurrent" else "marian")
        m, n = len(j["source"]["pieces"]), len(j["target"]["pieces"])
        kinds = {"cross": (n, m), "encoder": (m, m), "decoder": (n, n)}
        assert list(j["attention"]) == (["cross"] if model == "recurrent" else list(kinds))
        for kind, layers in j["attention"].items():
            assert layers["layers"] == ([0] if model == "recurrent" else [0, 1])
            for layer in layers["weights"]:
                for head in layer:
                    assert (len(head), len(head[0])) == kinds[kind]
                    for row in head: assert abs(sum(row) - 1) < 1e-5
PYTHON
  "$GLOSS" align $model --source three.src --target three.iso >links.txt
  expect_equal "lines of links" "$(wc -l <links.txt)" 3
  grep -qE '^([0-9]+-[0-9]+ ?)*$' links.txt || fail "$(cat links.txt)"
done

"$GLOSS" attend transformer "$line" --kind cross --layer 1 --tensors q,k,v,scores,weights,heads,concat,output >tensors.json
python3 - <<'PYTHON' || fail "tensors"
import json
tensors = json.load(open("tensors.json"))["attention"]["cross"]["tensors"][0]
assert list(tensors) == "q k v scores weights heads concat output".split()
assert tensors["heads"]["shape"][0] == 2 and tensors["concat"]["shape"][1] == 16
PYTHON
"$GLOSS" attend recurrent "$line" --kind cross --layer 0 --tensors s,h,context >/dev/null

# Tuning takes the best of all choices; both directions are joined.
printf '1-1\n1-1\n1-1\n' >gold
"$GLOSS" align transformer --source three.src --target three.iso --tune gold >tuned.txt 2>said.txt
grep -qE 'layer [01], .* of 12 choices, AER' said.txt || fail "$(cat said.txt)"
"$GLOSS" align transformer --source three.src --target three.iso --reverse recurrent --symmetrise union >union.txt
expect_equal "lines of joined links" "$(wc -l <union.txt)" 3

if "$GLOSS" attend transformer "$line" --output cross.svg 2>said.txt; then
  for picture in "one.png --head 1 --layer 0" "grid.pdf --head all" "words.svg --merge words --numbers --theme dark" \
    "causal.png --kind decoder --layer 0 --head 0" "padded.png --kind decoder --layer 0 --head 0 --pad-to 60"; do
    read -r file options <<<"$picture"
    # shellcheck disable=SC2086
    "$GLOSS" attend transformer "$line" --output "$file" $options
    [[ -s $file ]] || fail "$file is empty"
  done
  "$GLOSS" attend recurrent "$line" --output recurrent.svg
else
  grep -q "pictures" said.txt || fail "$(cat said.txt)"
fi

# Bad input gets one sentence.
attend() { "$GLOSS" attend transformer "$@"; }
expect_failure 1 "the sentence is empty" attend " "
expect_failure 1 "cannot spell '猫'" attend "$line" --target "猫"
expect_failure 2 "needs a sentence, or --source" attend
expect_failure 2 "svg.*png.*pdf" attend "$line" --output picture.gif
expect_failure 1 "no-such-folder" attend "$line" --output no-such-folder/a.svg
expect_failure 2 "--layer must be from 0 to 1, not '7'.*2 layers" attend "$line" --kind cross --layer 7
expect_failure 2 "--head must be from 0 to 1, not '2'" attend "$line" --output a.svg --head 2
expect_failure 2 "there is no matrix 'Q'.*scores, weights" attend "$line" --kind cross --layer 0 --tensors Q
expect_failure 2 "--kind and --layer" attend "$line" --tensors q
expect_failure 2 "is for a picture" attend "$line" --merge words
expect_failure 2 "has no encoder attention" "$GLOSS" attend recurrent "$line" --kind encoder
expect_failure 2 "cannot be padded to 1" attend "$line" --kind decoder --layer 0 --pad-to 1 --output a.svg
[[ ! -e a.svg ]] || fail "a picture was half written"
expect_failure 2 "align needs --source" "$GLOSS" align transformer
expect_failure 2 "add --reverse" "$GLOSS" align transformer --source three.src --target three.iso --symmetrise union
expect_failure 1 "3 lines and dates/test.iso has 20" "$GLOSS" align transformer --source three.src --target dates/test.iso
expect_failure 2 "there is no layer 5: the model has 2" "$GLOSS" align transformer --source three.src --target three.iso --layer 5
