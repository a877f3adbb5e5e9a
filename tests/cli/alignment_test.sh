#!/usr/bin/env bash
# gloss evaluate --alignment-gold: the error rate of word links, and what it refuses.
source "$TESTS_CLI/common.sh"

printf 'the house\nit rains .\n' >a.en
printf 'das Haus\nes regnet .\n' >a.de
printf '1-1 2-2\n1-1 2p1 2-2 3-3\n' >a.gold
printf '0-0 1-1\r\n1-0 2-1' >a.align
# evaluate [--gold FILE] [--links FILE] OPTIONS...: the files above unless others are named
evaluate() {
  local gold=a.gold links=a.align
  if [[ ${1:-} == --gold ]]; then gold=$2 && shift 2; fi
  if [[ ${1:-} == --links ]]; then links=$2 && shift 2; fi
  "$GLOSS" evaluate --alignment-gold "$gold" --alignment "$links" "$@"
}

# 4 links, 3 of them possible, 2 of the 5 sure ones: 1 - (2 + 3) / (4 + 5).
evaluate >score.txt
diff score.txt - <<'TEXT' || fail "the score is another"
AER = 0.4444 (2 sentences)
precision = 0.7500 (3 of 4 links are among the 6 possible ones)
recall = 0.4000 (2 of the 5 sure links were found)
TEXT
evaluate --source a.en --target a.de | diff score.txt - || fail "the texts change the score"
evaluate --json >score.json
python3 - score.json <<'PYTHON' || fail "--json says something else: $(cat score.json)"
import json, sys
o = json.load(open(sys.argv[1]))
assert list(o) == ["sentences", "aer", "precision", "recall", "links", "links_in_sure", "links_in_possible", "sure", "possible"], list(o)
assert abs(o["aer"] - 4 / 9) < 1e-12 and o["precision"] == 0.75 and o["recall"] == 0.4, o
assert [o[k] for k in list(o)[4:]] == [4, 2, 3, 5, 6] and o["sentences"] == 2, o
PYTHON
# Counted from 0, and the layout of the shared tasks.
printf '0-0 1-1\n0-0 1p0 1-1 2-2\n' >zero.gold
evaluate --gold zero.gold --gold-base 0 | diff score.txt - || fail "--gold-base 0 is not heeded"
printf '1 1 1 S\n1 2 2 S\n2 1 1\n2 2 1 P\n2 2 2 S\n2 3 3 S\n' >task.gold
evaluate --gold task.gold | diff score.txt - || fail "the shared tasks' layout is read otherwise"
evaluate --links - <a.align | diff score.txt - || fail "standard input is not read"

refuses() { expect_failure "$1" "$2" evaluate "${@:3}"; }
refuses 1 'line 1 of zero.gold: the link .0-0. has a word 0.*--gold-base 0$' --gold zero.gold
printf '0-0\n1=1\n' >bad.align
refuses 1 "line 2 of bad.align: '1=1' is no link" --links bad.align
printf '0-0\n' >short.align
refuses 1 'a.gold has 2 lines, but there are 1 sentence pairs' --links short.align
printf '0-0\n0-3\n' >far.align
refuses 1 "line 2 of far.align: the link '0-3' is outside its sentences, which have 3 and 3 words" \
  --links far.align --source a.en --target a.de
refuses 1 'a.en has 2 lines and short.align has 1: each line needs its translation' --source a.en --target short.align
refuses 1 'nowhere' --links nowhere
refuses 1 'holds no line' --links /dev/null
printf '\n\n' >none
refuses 1 'nothing to score' --gold none --links none
printf '0-0\n\xFF\n' >invalid.align
refuses 1 'line 2 of invalid.align is not valid UTF-8' --links invalid.align
printf 'das Haus\nes \xFF .\n' >bytes.de
refuses 1 'line 2 of bytes.de is not valid UTF-8' --source a.en --target bytes.de
evaluate --source a.en --target bytes.de --replace-invalid 2>said.txt | diff score.txt - || fail "--replace-invalid is not heeded"
grep -q 'were replaced in 1 line$' said.txt || fail "$(cat said.txt)"

refuses 2 'scores the links of --alignment: leave out MODEL' model
for option in "--reference a.de" "--hypothesis a.de" "--tokenize none" "--lowercase" "--output x" "--beam 4" "--no-cache"; do
  # shellcheck disable=SC2086
  refuses 2 "scores the links of --alignment: leave out ${option% *}\$" $option
done
refuses 2 'give both or none' --source a.en
refuses 2 'give both or none' --target a.de
refuses 2 '--gold-base must be .*not .2.' --gold-base 2
expect_failure 2 'standard input can be read once' evaluate --gold - --links -
expect_failure 2 'needs both --alignment-gold FILE and --alignment FILE' "$GLOSS" evaluate --alignment a.align
expect_failure 2 'needs both --alignment-gold FILE and --alignment FILE' "$GLOSS" evaluate --alignment-gold a.gold
for option in "--gold-base 1" "--target a.de"; do
  # shellcheck disable=SC2086
  expect_failure 2 "${option% *} is for scoring word links" "$GLOSS" evaluate --hypothesis a.de --reference a.de $option
done
