#!/usr/bin/env bash
# gloss translate: one line in, one line out, whatever the lines are like.
source "$TESTS_CLI/common.sh"

tiny_model model
translate() { "$GLOSS" translate model --max-length 12 "$@"; }
head -n 8 dates/test.src >eight.src
translate <eight.src >plain.txt
expect_equal "lines" "$(wc -l <plain.txt)" 8

# Files, --output, several files.
translate eight.src | diff - plain.txt || fail "a file is translated unlike standard input"
translate - <eight.src | diff - plain.txt || fail "- is translated unlike standard input"
translate eight.src --output out.txt >nothing.txt
diff out.txt plain.txt || fail "--output wrote something else"
[[ ! -s nothing.txt ]] || fail "--output wrote to standard output too"
translate eight.src eight.src | diff - <(cat plain.txt plain.txt) || fail "two files are not two files"

# Line ends, a byte order mark, blank lines and a missing last newline survive.
sed 's/$/\r/' eight.src | translate | diff - <(sed 's/$/\r/' plain.txt) || fail "CRLF was not kept"
{ printf '\xEF\xBB\xBF'; cat eight.src; } | translate | diff - plain.txt || fail "a byte order mark changed the text"
head -c -1 eight.src | translate | cmp - <(head -c -1 plain.txt) || fail "a missing last newline was not kept"
head -c -1 eight.src >open.src
translate open.src open.src | cmp - <(cat plain.txt; head -c -1 plain.txt) || fail "two open-ended files ran together"
printf '\n   \n\t\xC2\xA0\n' >blank.src
translate <blank.src | cmp - blank.src || fail "blank lines changed"
{ head -n 1 eight.src; echo; sed -n 2p eight.src; } | translate |
  diff - <(head -n 1 plain.txt; echo; sed -n 2p plain.txt) || fail "a blank line between others changed something"
expect_equal "nothing in" "$(translate </dev/null | wc -c)" 0

# The answer never depends on company.
tac eight.src | translate | tac | diff - plain.txt || fail "the order matters"
translate --scores <eight.src >scores.txt
cut -f 1 scores.txt | diff - plain.txt || fail "--scores changed the text"
for options in "--batch 1" "--batch 3 --workers 2" "--threads 1" "--threads 3 --workers 1" "--isa avx2"; do
  [[ $options != "--isa avx2" ]] || grep -qw avx2 /proc/cpuinfo || continue
  # shellcheck disable=SC2086
  translate --scores $options <eight.src | diff - scores.txt || fail "$options changes the answer"
done
translate --no-cache <eight.src | diff - plain.txt || fail "--no-cache changes the text"
# A cache that rounds: other scores, which nothing else changes; without a cache numbers are rounded all the same.
rounded() { translate --scores --cache-precision bfloat16 "$@" <eight.src; }
rounded >rounded.txt
cmp -s rounded.txt scores.txt && fail "--cache-precision bfloat16 changes no score" || true
translate --scores --cache-precision float32 <eight.src | diff - scores.txt || fail "float32 is not the default"
for options in "--batch 1" "--batch 3 --workers 2" "--threads 1" "--no-cache" "--no-cache --batch 3" "--isa avx2"; do
  [[ $options != "--isa avx2" ]] || grep -qw avx2 /proc/cpuinfo || continue
  # shellcheck disable=SC2086
  rounded $options | diff - rounded.txt || fail "$options changes the answer of a cache that rounds"
done
expect_failure 2 "--cache-precision must be .*'int8'" "$GLOSS" translate model --cache-precision int8
translate --sample --seed 3 <eight.src >sample.txt
translate --sample --seed 3 --batch 1 <eight.src | diff - sample.txt || fail "a sample depends on the batch"
translate --sample --seed 4 <eight.src | diff - sample.txt >/dev/null && fail "the seed does not matter" || true

# n-best and JSON.
translate --n-best 3 <eight.src >best.txt
expect_equal "n-best lines" "$(wc -l <best.txt)" 24
grep -vE '^[0-7] \|\|\| .* \|\|\| -?[0-9.e-]+$' best.txt && fail "n-best lines look otherwise" || true
awk -F ' [|][|][|] ' '$1 != last { print $2; last = $1 }' last=-1 best.txt | diff - plain.txt ||
  fail "the best of n-best is another"
translate --json <eight.src >lines.json
python3 - lines.json plain.txt eight.src <<'PYTHON' || fail "--json says something else"
import json, sys
objects = [json.loads(line) for line in open(sys.argv[1])]
texts = open(sys.argv[2]).read().splitlines()
sources = open(sys.argv[3]).read().splitlines()
assert len(objects) == len(texts) == 8
for i, (o, text, source) in enumerate(zip(objects, texts, sources)):
    assert o["line"] == i + 1 and o["source"] == source and o["translation"] == text
    best = o["translations"][0]
    assert best["text"] == text and o["source_pieces"][-1] == "</s>" and best["pieces"][-1] == "</s>"
    assert len(best["pieces"]) == len(best["token_log_probabilities"])
    assert abs(sum(best["token_log_probabilities"]) - best["log_probability"]) < 1e-4
    assert abs(best["log_probability"] / len(best["pieces"]) - best["score"]) < 1e-5
PYTHON
rows() { "$GLOSS" translate model --beam 1 --json "$@" <eight.src; }
python3 - <(rows) <(rows --no-cache) <<'PYTHON' || fail "key/value rows are not n and n (n + 1) / 2"
import json, sys
cached, uncached = ([json.loads(line) for line in open(f)] for f in sys.argv[1:])
for a, b in zip(cached, uncached):
    n = a["key_value_rows"]
    assert a["translation"] == b["translation"] and b["key_value_rows"] == n * (n + 1) // 2
    assert n in (len(a["translations"][0]["pieces"]), len(a["translations"][0]["pieces"]) - 1), (n, a)
PYTHON

# A line of a megabyte is translated in parts, and nothing beside it changes.
{ head -n 1 eight.src; head -c 1000000 < <(yes 'the 4th of May 1999') | tr '\n' ' '; echo; sed -n 2p eight.src; } >long.src
"$GLOSS" translate model --beam 1 --max-length 12 <long.src >long.txt
expect_equal "lines with a long one" "$(wc -l <long.txt)" 3
head -n 2 eight.src | "$GLOSS" translate model --beam 1 --max-length 12 | diff - <(sed -n '1p;3p' long.txt) ||
  fail "a long line changed its neighbours"
[[ $(sed -n 2p long.txt | wc -c) -gt 1000 ]] || fail "the long line was dropped"

# A line typed is answered before the next one comes.
coproc GLOSS_PROCESS { "$GLOSS" translate model --max-length 12; }
exec {to}>&"${GLOSS_PROCESS[1]}" {from}<&"${GLOSS_PROCESS[0]}"
for line in 1 2 3; do
  sed -n "${line}p" eight.src >&"$to"
  read -r -t 60 answer <&"$from" || fail "line $line was not answered at once"
  expect_equal "answer $line" "$answer" "$(sed -n "${line}p" plain.txt)"
done
exec {to}>&-

# Who reads no further ends it without a word.
yes "$(head -n 1 eight.src)" | "$GLOSS" translate model --beam 1 --max-length 4 2>closed.txt | head -n 2 >two.txt || true
[[ ! -s closed.txt && $(wc -l <two.txt) -eq 2 ]] || fail "a closed output: $(cat closed.txt)"

# Each sentence of a line on its own.
line='the 4th of May 1999. On 3 May 2001 it rained.'
echo "$line" | translate --split-sentences >split.txt
printf 'the 4th of May 1999.\nOn 3 May 2001 it rained.\n' | translate | paste -s -d ' ' | diff - split.txt ||
  fail "--split-sentences translates otherwise than sentence by sentence"
# parts OPTIONS...: in how many parts the line is translated
parts() { "$GLOSS" translate model --max-length 12 --json "$@" | grep -o '"source_pieces":\[[^]]*\]' | grep -o '</s>' | wc -l; }
expect_equal "parts of a line" "$(echo "$line" | parts)" 1
expect_equal "parts with --split-sentences" "$(echo "$line" | parts --split-sentences)" 2

# --max-source-length cuts a line into parts, of so many pieces at most.
expect_equal "parts of a short line" "$(echo 'May 3, 1999' | parts --max-source-length 40)" 1
echo "$line" | "$GLOSS" translate model --max-length 12 --json --max-source-length 8 >cut.json
python3 - cut.json <<'PYTHON' || fail "parts are too long: $(cat cut.json)"
import json, sys
pieces = json.load(open(sys.argv[1], encoding="utf-8"))["source_pieces"]
parts, length = 0, 0
for piece in pieces:
    length += 1
    if piece != "</s>":
        continue
    assert 1 < length <= 8 + 3, pieces  # with the end symbol; a word that is cut may be segmented anew
    parts, length = parts + 1, 0
assert length == 0 and parts >= 2, pieces
PYTHON
expect_equal "lines" "$(echo "$line" | translate --max-source-length 8 | wc -l)" 1

# What the vocabulary has no pieces for is copied, unless that is switched off.
echo 'May 3, 😀 1999' >emoji.src
translate <emoji.src | grep -q '😀' || fail "an emoji is lost"
for option in --no-copy-unknown --plain; do
  translate $option <emoji.src >emoji.txt
  grep -q '😀' emoji.txt && fail "$option copies" || true
  expect_equal "lines with $option" "$(wc -l <emoji.txt)" 1
done

# --plain heeds the cap of the model's own files, whose max_length counts the start symbol too.
cp -r model capped
sed -i 's/"max_length": *[0-9]*/"max_length": 6/' capped/generation_config.json
longest() { # longest OPTIONS...: pieces of the longest translation
  "$GLOSS" translate capped --json "$@" <eight.src |
    python3 -c 'import json, sys; print(max(len(json.loads(line)["translations"][0]["pieces"]) for line in sys.stdin))'
}
expect_equal "longest with --plain" "$(longest --plain)" 5
expect_equal "longest with --plain --max-length 7" "$(longest --plain --max-length 7)" 7
[[ $(longest) -gt 7 ]] || fail "without --plain the cap is not that of the source: $(longest)"
