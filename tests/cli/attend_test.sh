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
  if grep -qvE '^([0-9]+-[0-9]+ ?)*$' links.txt || ! grep -q - links.txt; then fail "$(cat links.txt)"; fi
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
  # --layer and --head choose one, the mean or all, and every choice is another picture. What each shows is a test
  # of the library.
  rm -f layers.txt
  for layer in 0 1 mean all; do
    for head in 0 1 mean all; do
      "$GLOSS" attend transformer "$line" --layer $layer --head $head --output choice.svg
      md5sum <choice.svg >>layers.txt
      title=$(sed -nE 's:^<title>(.*)</title>$:\1:p' choice.svg)
      case $layer.$head in
        *all*) expect_equal "title of $layer.$head" "$title" cross-attention ;;
        mean.mean) expect_equal "title of $layer.$head" "$title" "cross-attention, mean of 2 layers, mean of 2 heads" ;;
        mean.*) expect_equal "title of $layer.$head" "$title" "cross-attention, mean of 2 layers, head $head" ;;
        *.mean) expect_equal "title of $layer.$head" "$title" "cross-attention, layer $layer, mean of 2 heads" ;;
        *) expect_equal "title of $layer.$head" "$title" "cross-attention, layer $layer, head $head" ;;
      esac
    done
  done
  expect_equal "number of different pictures" "$(sort -u layers.txt | wc -l)" 16
  same() {
    # shellcheck disable=SC2086
    "$GLOSS" attend transformer "$line" --output a.svg $1 && "$GLOSS" attend transformer "$line" --output b.svg $2
    cmp a.svg b.svg || fail "'$1' and '$2' draw different pictures"
    rm a.svg b.svg
  }
  same "--head all" "--head all --layer all"
  same "--layer all" "--layer all --head mean"
  same "--kind cross" "--layer 0" # the last but one of two
  same "--kind encoder" "--kind encoder --layer 1"
  "$GLOSS" attend recurrent "$line" --output recurrent.svg
else
  grep -q "pictures" said.txt || fail "$(cat said.txt)"
fi

# Bad input gets one sentence.
attend() { "$GLOSS" attend transformer "$@"; }
expect_failure 1 "the sentence is empty" attend " "
expect_failure 1 "the sentence is empty" attend ""
expect_failure 2 "the sentence is not valid UTF-8" attend $'a \xff man'
expect_failure 2 "target is not valid UTF-8" attend "$line" --target $'\xc3'
expect_failure 1 "cannot spell '猫'" attend "$line" --target "猫"
expect_failure 1 "translation is empty" attend "$line" --target ""
expect_failure 2 "needs a sentence in quotes behind MODEL, or --source" attend
expect_failure 2 "MODEL is required" "$GLOSS" attend
expect_failure 2 "came as 3 arguments, 'a' and 'man' first: put quotes around it" attend a man sleeps --layer 0
expect_failure 2 "source is given an empty name" attend --source ""
# Neither command has --replace-invalid: the advice says which have.
printf 'a \xff man\n' >bad.src
expect_failure 1 "convert the file; train, translate, score and evaluate can" attend --source bad.src
expect_failure 1 "convert the file; train, translate, score and evaluate can" \
  "$GLOSS" align transformer --source bad.src --target bad.src
expect_failure 1 "the text file '' does not exist" attend --source three.src --target ""
expect_failure 2 "are given: leave out one" attend "$line" --source three.src
for file in picture.gif picture /; do
  expect_failure 2 "--output must end in .svg, .png or .pdf for a picture or in .json for numbers, not as '$file'" \
    attend "$line" --output $file
done
expect_failure 1 "no-such-folder" attend "$line" --output no-such-folder/a.svg
for layer in 7 2 -1 x "" 1.0 99999999999999999999; do
  expect_failure 2 "--layer must be a number from 0 to 1 or all, not '$layer': the model has 2 layers of cross-attention" \
    attend "$line" --kind cross --layer "$layer"
  expect_failure 2 "--layer must be a number from 0 to 1, mean or all, not '$layer': .* encoder self-attention" \
    attend "$line" --kind encoder --layer "$layer" --output a.svg
done
expect_failure 2 "--layer must be 0 or all, not '1': the model has 1 layer of cross-attention" \
  "$GLOSS" attend recurrent "$line" --layer 1
expect_failure 2 "--layer mean is for a picture: add --output" attend "$line" --layer mean
expect_failure 2 "--head must be a number from 0 to 1, mean or all, not '2': a layer has 2 heads" \
  attend "$line" --output a.svg --head 2
expect_failure 2 "--head must be 0, mean or all, not 'x': a layer has 1 head\$" \
  "$GLOSS" attend recurrent "$line" --output a.svg --head x
expect_failure 2 "there is no matrix 'Q'.*scores, weights" attend "$line" --kind cross --layer 0 --tensors Q
for tensors in "" q,,k q,; do
  expect_failure 2 "there is no matrix ''" attend "$line" --kind cross --layer 0 --tensors "$tensors"
done
expect_failure 2 "say --kind, and the number of the --layer" attend "$line" --tensors q
expect_failure 2 "say --kind, and the number of the --layer" attend "$line" --tensors q --kind cross --layer all
expect_failure 2 "is for a picture" attend "$line" --merge words
expect_failure 2 "has no encoder self-attention: choose --kind cross" "$GLOSS" attend recurrent "$line" --kind encoder
expect_failure 2 "a picture shows one kind" attend "$line" --kind all --output a.svg
expect_failure 2 "cannot be padded to 1" attend "$line" --kind decoder --layer 0 --pad-to 1 --output a.svg
[[ ! -e a.svg ]] || fail "a picture was half written"
"$GLOSS" attend transformer --source three.src --target dates/test.iso >stdout.txt 2>stderr.txt && fail "17 lines too many"
grep -q '^gloss: three.src has 3 lines and dates/test.iso has 20: each line needs its translation$' stderr.txt ||
  fail "$(cat stderr.txt)"
expect_failure 2 "align needs --source" "$GLOSS" align transformer
expect_failure 2 "add --reverse" "$GLOSS" align transformer --source three.src --target three.iso --symmetrise union
expect_failure 1 "3 lines and dates/test.iso has 20" "$GLOSS" align transformer --source three.src --target dates/test.iso
expect_failure 2 "--layer must be a number from 0 to 1, not '5': transformer has 2 layers" "$GLOSS" align transformer --source three.src --target three.iso --layer 5
expect_failure 2 "--head must be a number from 0 to 1 or mean, not '2': a layer of transformer has 2 heads" "$GLOSS" align transformer --source three.src --target three.iso --head 2
expect_failure 2 "--layer must be 0, not '1': recurrent has 1 layer" "$GLOSS" align recurrent --source three.src --target three.iso --layer 1
expect_failure 2 "--tune GOLD: leave it out, or add that" "$GLOSS" align transformer --source three.src --target three.iso --gold-base 0

# A blank line of a file has its object, and a folder may have any name.
printf '%s\n \n%s\n' "$line" "$line" >gap.src
"$GLOSS" attend transformer --source gap.src >gap.json
mv transformer $'trans\xff'
"$GLOSS" attend $'trans\xff' "$line" >named.json
mv $'trans\xff' transformer
python3 - <<'PYTHON' || fail "blank lines or the folder's name"
import json
lines = [json.loads(line) for line in open("gap.json", encoding="utf-8")]
assert [line["line"] for line in lines] == [1, 2, 3]
assert lines[1] == {"model": "transformer", "model_type": "marian", "line": 2, "blank": True}
assert all("attention" in line for line in lines[::2])
assert json.load(open("named.json", encoding="utf-8"))["model"] == "trans\ufffd"
PYTHON
