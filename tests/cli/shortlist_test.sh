#!/usr/bin/env bash
# gloss shortlist: a table by the model's own links, by those of a file, or of a table of words.
source "$TESTS_CLI/common.sh"

tiny_model model
shortlist() { "$GLOSS" shortlist model "$@" 2>said.txt; }
text=(--source dates/train.src --target dates/train.iso)

# The model's own links are those that align prints, where the command says that it looked; neither threads nor the
# order of pairs changes a byte.
shortlist "${text[@]}" --output own.lex || fail "$(cat said.txt)"
place='\(layer ([01]), (mean|head [01])( of the heads)?, (emitting|reading) step\)'
grep -qEx "$(wc -l <own.lex) lines of [0-9]+ links between the pieces of 300 pairs $place" said.txt || fail "$(cat said.txt)"
read -r layer head step < <(sed -E "s/.*$place/\1 \2 \4/; s/head //" said.txt)
"$GLOSS" align model "${text[@]}" --layer "$layer" --head "$head" --step "$step" --output own.align
shortlist "${text[@]}" --links own.align | cmp - own.lex || fail "the links of align give another table"
shortlist "${text[@]}" --links - <own.align | cmp - own.lex || fail "links are not read from standard input"
shortlist "${text[@]}" --threads 1 | cmp - own.lex || fail "the number of threads changes the table"
for part in src iso; do tac "dates/train.$part" >"turned.$part"; done
shortlist --source turned.src --target turned.iso | cmp - own.lex || fail "the order of pairs changes the table"

# Rows add up to one, are sorted and as long as asked for; NULL's holds the share of each piece.
python3 - own.lex <<'PYTHON' || fail "the table has another form"
import itertools, json, sys
rows = [line.rstrip("\n").split(" ") for line in open(sys.argv[1], encoding="utf-8")]
assert all(len(row) == 3 for row in rows)
ids = json.load(open("model/vocab.json"))
order = [-1 if source == "NULL" else ids[source] for _, source, _ in rows]
assert order == sorted(order) and order[0] == -1 and len(set(order)) > 30
for source, group in itertools.groupby(rows, key=lambda row: row[1]):
    group = list(group)
    numbers = [float(row[2]) for row in group]
    assert numbers == sorted(numbers, reverse=True) and len({row[0] for row in group}) == len(group), source
    assert abs(sum(numbers) - 1) < 1e-4 or len(group) == 100, (source, sum(numbers))
assert "</s>" not in {target for target, _, _ in rows}
PYTHON
shortlist "${text[@]}" --best 2 >two.lex
expect_equal "most translations of a piece" "$(awk '$2 != "NULL"' two.lex | cut -d' ' -f2 | sort | uniq -c | sort -n | awk 'END { print $1 }')" 2
diff <(grep ' NULL ' own.lex) <(grep ' NULL ' two.lex) || fail "--best cuts the row of NULL"

# A table of words.
printf '%s\n' '2021 2021 1' 'May NULL 0.5' '05 May 0.75' '2021 May 0.25' >words.lex
shortlist --table words.lex --output pieces.lex || fail "$(cat said.txt)"
grep -qx "$(wc -l <pieces.lex) lines of words.lex" said.txt || fail "$(cat said.txt)"
shortlist --table <(tac words.lex) | cmp - pieces.lex || fail "the order of lines changes the table"
grep -q ' NULL ' pieces.lex || fail "NULL has no row: $(cat pieces.lex)"

# Translating with it: a line says the same in any company, and among all pieces what it says without a table.
head -n 12 dates/test.src >twelve.src
translate() { "$GLOSS" translate model twelve.src --max-length 12 --beam 3 --scores "$@"; }
few=(--shortlist own.lex --shortlist-first 5 --shortlist-best 2)
translate >whole.txt
translate "${few[@]}" >few.txt
cmp -s few.txt whole.txt && fail "--shortlist changes no score" || true
translate --shortlist own.lex --shortlist-first 100000 | diff - whole.txt || fail "all pieces are not all"
for options in "--batch 1" "--batch 5 --workers 2 --threads 2" "--batch 3 --threads 1"; do
  # shellcheck disable=SC2086
  translate "${few[@]}" $options | diff - few.txt || fail "$options changes something among likely pieces"
done
translate "${few[@]}" --cache-precision bfloat16 >rounded.txt
translate "${few[@]}" --cache-precision bfloat16 --no-cache | diff - rounded.txt || fail "the cache changes something"
draw() { "$GLOSS" translate model twelve.src --max-length 12 --sample --seed 3 --scores "${few[@]}" "$@"; }
draw >drawn.txt
draw --batch 1 | diff - drawn.txt || fail "a draw depends on its company"
"$GLOSS" evaluate model --source twelve.src --reference <(head -n 12 dates/test.iso) --max-length 12 --beam 3 \
  "${few[@]}" --output said.out >/dev/null
cut -f 1 few.txt | diff - said.out || fail "evaluate translates otherwise"
for option in "--shortlist-first 5" "--shortlist-best 5"; do
  # shellcheck disable=SC2086
  expect_failure 2 "^gloss: ${option% *} is for choosing among likely pieces: add --shortlist" \
    "$GLOSS" translate model $option twelve.src
done
expect_failure 1 'nowhere' "$GLOSS" translate model --shortlist nowhere twelve.src
sed 's/ / foreign/' own.lex >foreign.lex
expect_failure 1 'foreign.lex' "$GLOSS" translate model --shortlist foreign.lex twelve.src
(head -n 3 own.lex && sed 's/ / foreign/' own.lex) >foreign.lex
expect_failure 1 'lines of foreign.lex have words that are no pieces of this model' \
  "$GLOSS" translate model --shortlist foreign.lex twelve.src

# Bad input; a file that is there stays.
cp own.lex before.lex
refuses() { expect_failure "$1" "$2" "$GLOSS" shortlist model "${@:3}" --output own.lex; }
head -n 299 own.align >short.align
refuses 1 'short.align ends behind line 299 and dates/train.src does not: each pair needs' "${text[@]}" --links short.align
(cat own.align && echo 0-0) >long.align
refuses 1 'long.align goes on behind line 300 and dates/train.src does not' "${text[@]}" --links long.align
sed '7s/.*/0-99/' own.align >far.align
refuses 1 "line 7 of far.align: the link '0-99' is outside its sentences" "${text[@]}" --links far.align
sed '7s/.*/0=0/' own.align >bad.align
refuses 1 "line 7 of bad.align: '0=0' is no link" "${text[@]}" --links bad.align
sed 's/.*//' own.align >none.align
refuses 1 'have no linked words' "${text[@]}" --links none.align
head -n 9 dates/train.iso >short.iso
refuses 1 'dates/train.src has 300 lines and short.iso has 9' --source dates/train.src --target short.iso
refuses 1 'nowhere' --source nowhere --target dates/train.iso
printf '05 May 0.75\n05 May\n' >bad.lex
refuses 1 "line 2 of bad.lex is '05 May', but a target, a source and a probability are expected" --table bad.lex
printf '05 May 7\n' >bad.lex
refuses 1 "line 1 of bad.lex has the probability '7', but a number from 0 to 1" --table bad.lex
printf '05 \xFF 1\n' >bad.lex
refuses 1 'line 1 of bad.lex is not valid UTF-8' --table bad.lex
gzip -k words.lex
refuses 1 'words.lex.gz' --table words.lex.gz
refuses 1 'null has no pair of words' --table /dev/null
refuses 1 'nowhere' --table nowhere
refuses 2 'needs --source FILE and --target FILE, or --table FILE'
refuses 2 'needs --source FILE and --target FILE, or --table FILE' --source dates/train.src
for option in "--source dates/train.src" "--target dates/train.iso" "--links own.align"; do
  # shellcheck disable=SC2086
  refuses 2 "^gloss: ${option% *} is for counting in a text: leave it out, or --table" --table words.lex $option
done
for option in "--threads 1" "--precision int8"; do
  # shellcheck disable=SC2086
  refuses 2 "^gloss: ${option% *} is for the model's own links: leave it out" --table words.lex $option
  # shellcheck disable=SC2086
  refuses 2 "^gloss: ${option% *} is for the model's own links: leave it out" "${text[@]}" --links own.align $option
done
refuses 2 'standard input can be read once' --source - --target dates/train.iso --links -
refuses 2 '--best must be' "${text[@]}" --best 0
cmp own.lex before.lex || fail "a refused command changed the file"
expect_failure 1 'nowhere' "$GLOSS" shortlist nowhere "${text[@]}"
expect_failure 1 '/dev/full' "$GLOSS" shortlist model "${text[@]}" --links own.align --output /dev/full

# A model that aligns a step earlier than is usual: the right words come first all the same.
shared=$TESTS_CLI/../../../shared
real=$shared/golden/hf-marian-multi30k-en-de
if [[ -f $real/model.safetensors && -f $shared/data/multi30k/train.en.gz ]]; then
  for language in en de; do zcat "$shared/data/multi30k/train.$language.gz" | sed -n 1,1000p >"real.$language"; done
  "$GLOSS" shortlist "$real" --source real.en --target real.de --output real.lex 2>said.txt || fail "$(cat said.txt)"
  grep -q 'emitting step)$' said.txt || fail "$(cat said.txt)"
  for pair in "man Mann" "dog Hund" "water Wasser" "two zwei"; do
    expect_equal "the first translation of ${pair% *}" "$(grep -m1 " ▁${pair% *} " real.lex | cut -d' ' -f1)" "▁${pair#* }"
  done
fi
