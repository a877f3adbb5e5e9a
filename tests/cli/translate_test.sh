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

# Scoring and evaluating.
"$GLOSS" score model --source dates/test.src --target dates/test.iso >score.txt 2>summary.txt
expect_equal "scored lines" "$(wc -l <score.txt)" 20
grep -qE '^20 lines, [0-9]+ pieces, log-probability -[0-9.]+, perplexity [0-9.]+$' summary.txt || fail "$(cat summary.txt)"
"$GLOSS" score model --source dates/test.src --target dates/test.iso --tokens 2>/dev/null |
  awk -F '\t' '{ sum = 0; for (i = 2; i <= NF; ++i) { split($i, part, " "); sum += part[2] }
    if ($NF !~ /^<\/s> / || sum - $1 > 1e-3 || $1 - sum > 1e-3) exit 1 }' || fail "--tokens does not add up"
"$GLOSS" evaluate model --source dates/test.src --reference dates/test.iso --output evaluated.txt --max-length 12 >evaluated.log
translate dates/test.src | diff - evaluated.txt || fail "evaluate translates otherwise"
"$GLOSS" evaluate --hypothesis evaluated.txt --reference dates/test.iso | diff - <(grep -v perplexity evaluated.log) ||
  fail "the same translations have other scores"
"$GLOSS" evaluate --hypothesis dates/test.iso --reference dates/test.iso dates/test.src >same.txt
grep -qE '^BLEU\|nrefs:2\|case:mixed\|eff:no\|tok:13a\|.* = 100\.0' same.txt || fail "$(cat same.txt)"
grep -qx 'exact match = 100.00 % (20 of 20 lines)' same.txt || fail "$(cat same.txt)"
"$GLOSS" info model --json --source-length 7 --target-length 5 --batch 3 --beam 2 |
  python3 -c 'import json, sys; c = json.load(sys.stdin)["cache"]
assert c["payload_bytes"] == 2 * 4 * (2 * 5 * 16 * 3 * 2 + 2 * 7 * 16 * 3), c' || fail "info counts other bytes"
