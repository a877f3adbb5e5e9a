#!/usr/bin/env bash
# gloss plot: pictures of trainings, whole, damaged, alone and together.
source "$TESTS_CLI/common.sh"

# report UPDATE LOSS [MORE]: a line as gloss train writes it
report() {
  printf '{"update":%d,"epoch":1,"target_tokens":9,"loss":%s,"perplexity":%s,"learning_rate":0.001,' "$1" "$2" "$2"
  printf '"target_tokens_per_second":3000,"seconds":%d%s}\n' "$1" "${3:-}"
}
validation() {
  printf '{"update":%d,"epoch":1,"target_tokens":9,"valid_perplexity":%s%s,"best":true,"seconds":%d}\n' "$1" "$2" \
    "${3:-}" "$1"
}
mkdir -p runs/one runs/two other/two
{
  report 2 9.5
  report 4 8.25
  validation 4 7.5
  report 6 7
} >runs/one/train.jsonl
{
  report 2 9
  validation 2 9.5 ',"valid_bleu":12.5'
  report 4 8
} >runs/two/train.jsonl
cp runs/two/train.jsonl other/two/train.jsonl

if ! "$GLOSS" plot runs/one --output one.svg 2>error.txt && grep -q 'built without pictures' error.txt; then
  expect_failure 1 'this gloss was built without pictures: build it with -DGLOSS_PICTURES=ON' \
    "$GLOSS" plot runs/one --output one.png
  [[ ! -e one.png && ! -e one.svg ]] || fail "a picture was begun"
  skip "this build has no pictures"
fi
[[ ! -s error.txt ]] || fail "it should say nothing: $(cat error.txt)"

# title FILE: what the picture says it is
title() { sed -nE 's:^<title>(.*)</title>$:\1:p' "$1"; }
plot() { "$GLOSS" plot "$@" 2>said.txt || fail "plot $* failed: $(cat said.txt)"; }

expect_equal "the panels" "$(title one.svg)" \
  "Training of one, loss, perplexity, learning rate, target tokens a second"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' one.svg || fail "one.svg is not XML"
plot runs/one >standard.svg
cmp one.svg standard.svg || fail "standard output and a file differ"
plot runs/one/train.jsonl --output again.svg
cmp one.svg again.svg || fail "a folder and its log differ"
plot runs/one --output one.png
[[ $(head -c 8 one.png | od -An -t x1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "one.png is no PNG"
plot runs/one --output one.pdf
[[ $(head -c 5 one.pdf) == %PDF- ]] || fail "one.pdf is no PDF"

# Every option changes the picture.
for option in "--over time" "--theme dark" "--smooth 3" "--metric loss"; do
  # shellcheck disable=SC2086
  plot runs/one $option --output changed.svg
  ! cmp -s one.svg changed.svg || fail "$option changes nothing"
done
expect_equal "one metric" "$(title changed.svg)" "Training of one, loss"
plot runs/one --metric speed,loss --output two.svg
expect_equal "two metrics" "$(title two.svg)" "Training of one, loss, target tokens a second"
plot --metric loss runs/one --output before.svg
cmp changed.svg before.svg || fail "--metric before the run is another one"

# Several runs; BLEU where one of them has it.
plot runs/one runs/two/ other/two --output all.svg
expect_equal "several runs" "$(title all.svg)" \
  "Training of 3 models, loss, perplexity, BLEU, learning rate, target tokens a second"

# A run that was killed in the middle of a line, and zeros that a power cut left.
mkdir cut nulls
head -c -20 runs/two/train.jsonl >cut/train.jsonl
plot cut --output cut.svg
expect_equal "what is said of a cut line" "$(cat said.txt)" "gloss: 1 damaged line of the logs was left out"
{
  cat runs/two/train.jsonl
  printf '\0\0\0\0\n{"update":'
} >nulls/train.jsonl
plot nulls cut --output cut.svg
expect_equal "what is said of three" "$(cat said.txt)" "gloss: 3 damaged lines of the logs were left out"

# Nothing to draw.
mkdir empty none
: >empty/train.jsonl
refused() { expect_failure 1 "$1" "$GLOSS" plot "${@:2}" --output refused.svg; }
refused 'empty/train.jsonl is empty: the run has not reported anything yet' empty
refused 'none holds no train.jsonl: name the --output folder of gloss train' none
refused 'there is no run nowhere: ' runs/one nowhere
echo "A man in an orange hat." >text.jsonl
refused "text.jsonl holds no line of a training's log" text.jsonl
refused "holds no line of a training's log" "$GLOSS"
refused 'one has no value of BLEU to draw: it comes with --valid-metric bleu' runs/one --metric bleu
refused 'the runs have no value of BLEU' runs/one runs/one/../one/train.jsonl --metric bleu
refused 'it is a device or pipe' /dev/null
[[ ! -e refused.svg ]] || fail "a refused picture was written"

# Nowhere to draw it; what was there stays.
echo old >old.svg
expect_failure 1 'there is no run nowhere' "$GLOSS" plot nowhere --output old.svg
expect_equal "the former file" "$(cat old.svg)" old
expect_failure 1 'cannot write no/one.svg: the folder no does not exist' "$GLOSS" plot runs/one --output no/one.svg
expect_failure 2 "a picture's name must end in .svg, .png or .pdf, not as 'one.jpg' does" \
  "$GLOSS" plot runs/one --output one.jpg

expect_failure 2 'RUN is required' "$GLOSS" plot --output one.svg
expect_failure 2 'runs/one is named twice: leave one out' "$GLOSS" plot runs/one runs/one --output one.svg
for metric in colour loss,colour loss,,bleu loss, ""; do
  expect_failure 2 "metric takes loss, perplexity, bleu, learning-rate and speed, with commas between, not '(colour)?'" \
    "$GLOSS" plot runs/one --metric "$metric"
done
expect_failure 2 "--metric names loss twice: leave one out" "$GLOSS" plot runs/one --metric loss,speed,loss
expect_failure 2 "over must be updates or time, not 'epochs'" "$GLOSS" plot runs/one --over epochs
expect_failure 2 'smooth must be a whole number' "$GLOSS" plot runs/one --smooth -1
if script -qec true /dev/null >/dev/null 2>&1; then # a terminal, where there is one to be had
  script -qec "'$GLOSS' plot runs/one" /dev/null >terminal.txt || true
  grep -q 'name a file, --output training.svg' terminal.txt || fail "a picture on a terminal: $(head -c 200 terminal.txt)"
fi

# A machine without fonts.
mkdir fonts
echo "<?xml version='1.0'?><fontconfig><dir>$PWD/fonts</dir><cachedir>$PWD/fonts</cachedir></fontconfig>" >fonts/none.conf
expect_failure 1 'pictures need a font, and none is installed: install the Debian package fonts-dejavu-core' \
  env FONTCONFIG_FILE="$PWD/fonts/none.conf" "$GLOSS" plot runs/one --output one.svg
