#!/usr/bin/env bash
# gloss score: every form of its output says the same.
source "$TESTS_CLI/common.sh"

tiny_model model
pair=(--source dates/test.src --target dates/test.iso)
score() { "$GLOSS" score model "${pair[@]}" "$@"; }

score >plain.txt 2>summary.txt
expect_equal "scored lines" "$(wc -l <plain.txt)" 20
grep -vE '^-[0-9]+\.[0-9]{6}$' plain.txt && fail "a score looks otherwise" || true
grep -qE '^20 lines, [0-9]+ pieces, log-probability -[0-9.]+, perplexity [0-9.]+$' summary.txt || fail "$(cat summary.txt)"

# --tokens, --json and the line on standard error, against the plain scores.
score --tokens >tokens.txt 2>summary2.txt
score --json >lines.json 2>summary3.txt
diff summary.txt summary2.txt && diff summary.txt summary3.txt || fail "the form changes the summary"
python3 - plain.txt tokens.txt lines.json summary.txt <<'PYTHON' || fail "the forms differ"
import json, math, re, sys
plain, tokens, objects = (open(name, encoding="utf-8").read().splitlines() for name in sys.argv[1:4])
assert len(plain) == len(tokens) == len(objects) == 20
pieces, total = 0, 0
for i, (one, row, text) in enumerate(zip(plain, tokens, objects)):
    o = json.loads(text)
    assert list(o) == ["line", "log_probability", "pieces", "token_log_probabilities"], list(o)
    assert o["line"] == i + 1
    assert abs(o["log_probability"] - float(one)) < 1e-6
    assert abs(sum(o["token_log_probabilities"]) - o["log_probability"]) < 1e-4
    assert all(p <= 0 for p in o["token_log_probabilities"])
    first, *parts = row.split("\t")
    assert first == one
    named = [part.rsplit(" ", 1) for part in parts]
    assert [name for name, _ in named] == o["pieces"] and o["pieces"][-1] == "</s>"
    assert all(abs(float(p) - q) < 1e-6 for (_, p), q in zip(named, o["token_log_probabilities"], strict=True))
    pieces += len(o["pieces"])
    total += o["log_probability"]
said = re.match(r"20 lines, (\d+) pieces, log-probability (\S+), perplexity (\S+)", open(sys.argv[4]).read())
assert int(said[1]) == pieces and abs(float(said[2]) - total) < 1e-3, (said[0], pieces, total)
assert abs(float(said[3]) - math.exp(-total / pieces)) < 1e-3, (said[0], pieces, total)
PYTHON

# --output, --threads and the order of lines change nothing.
score --output out.txt >nothing.txt 2>/dev/null
diff out.txt plain.txt || fail "--output wrote something else"
[[ ! -s nothing.txt ]] || fail "--output wrote to standard output too"
for threads in 1 3; do
  score --threads $threads 2>/dev/null | diff - plain.txt || fail "--threads $threads changes scores"
done
"$GLOSS" score model --source <(tac dates/test.src) --target <(tac dates/test.iso) 2>/dev/null | tac |
  diff - plain.txt || fail "the order matters"

# Bytes that are not UTF-8.
{ sed 1q dates/test.src; printf 'a\xFFb\n'; } >bytes.src
head -n 2 dates/test.iso >two.iso
status=0
"$GLOSS" score model --source bytes.src --target two.iso >first.txt 2>stderr.txt || status=$?
expect_equal "status" $status 1
grep -q 'line 2 of bytes.src is not valid UTF-8' stderr.txt || fail "$(cat stderr.txt)"
"$GLOSS" score model --source bytes.src --target two.iso --replace-invalid >two.txt 2>stderr.txt
expect_equal "scores with replaced bytes" "$(wc -l <two.txt)" 2
head -n 1 two.txt | diff - <(head -n 1 plain.txt) || fail "a replaced byte changed its neighbour"
