#!/usr/bin/env bash
# gloss evaluate: what it translates and what it is given, with every option of its own.
source "$TESTS_CLI/common.sh"

tiny_model model
"$GLOSS" evaluate model --source dates/test.src --reference dates/test.iso --output evaluated.txt --max-length 12 \
  >evaluated.log
"$GLOSS" translate model --max-length 12 dates/test.src | diff - evaluated.txt || fail "evaluate translates otherwise"
"$GLOSS" evaluate --hypothesis evaluated.txt --reference dates/test.iso | diff - <(grep -v perplexity evaluated.log) ||
  fail "the same translations have other scores"

# The perplexity is that of gloss score.
"$GLOSS" score model --source dates/test.src --target dates/test.iso 2>&1 >/dev/null |
  sed -E 's/^.* ([0-9]+) pieces, .* perplexity (.*)$/perplexity = \2 (\1 pieces of the reference)/' |
  diff - <(grep perplexity evaluated.log) || fail "evaluate and score have other perplexities"

# --json says what the lines say.
"$GLOSS" evaluate model --source dates/test.src --reference dates/test.iso --max-length 12 --json >evaluated.json
python3 - evaluated.json evaluated.log <<'PYTHON' || fail "--json says something else: $(cat evaluated.json)"
import json, sys
o, log = json.load(open(sys.argv[1])), open(sys.argv[2]).read().splitlines()
assert list(o) == ["lines", "bleu", "chrf", "exact_match", "perplexity"], list(o)
bleu, chrf = o["bleu"], o["chrf"]
precisions = "/".join(f"{p:.1f}" for p in bleu["precisions"])
assert log[0].startswith(f"BLEU|{bleu['signature']} = {bleu['score']:.2f} {precisions} (BP = {bleu['brevity_penalty']:.3f}"), log
assert f"hyp_len = {bleu['hypothesis_length']} ref_len = {bleu['reference_length']})" in log[0], log
assert log[1] == f"chrF2|{chrf['signature']} = {chrf['score']:.2f}", log
match = o["exact_match"]
assert o["lines"] == 20
assert log[2] == f"exact match = {match['percent']:.2f} % ({match['count']} of 20 lines)", log
assert log[3] == f"perplexity = {o['perplexity']['value']:.4f} ({o['perplexity']['pieces']} pieces of the reference)", log
PYTHON

# bleu SIGNATURE SCORE OPTIONS...: of the files hypothesis and reference; the score as far as it is given
bleu() {
  "$GLOSS" evaluate --hypothesis hypothesis --reference reference "${@:3}" >scores.txt
  grep -qE "^BLEU\|nrefs:1\|$1\|smooth:exp\|version:[0-9.]+ = $2" scores.txt || fail "${*:3}: $(cat scores.txt)"
}
# Words are split at commas by 13a and intl, and case counts unless it is ignored.
printf 'One two three four, five.\nHello big wide World\n' >hypothesis
printf 'one two three four , five.\nhello big wide world\n' >reference
bleu 'case:mixed\|eff:no\|tok:13a' '63\.85 '
bleu 'case:lc\|eff:no\|tok:13a' '100\.00 ' --lowercase
bleu 'case:lc\|eff:no\|tok:13a' '100\.00 ' --lowercase --tokenize 13a
bleu 'case:lc\|eff:no\|tok:intl' '100\.00 ' --lowercase --tokenize intl
bleu 'case:lc\|eff:no\|tok:none' '53\.42 ' --lowercase --tokenize none
bleu 'case:mixed\|eff:no\|tok:none' '17\.07 ' --tokenize none
grep -q '^chrF2|.*case:mixed.* = 83\.20$' scores.txt || fail "chrF with case: $(cat scores.txt)"
"$GLOSS" evaluate --hypothesis hypothesis --reference reference --lowercase |
  grep -q '^chrF2|.*case:lc.* = 100\.00$' || fail "chrF does not ignore case"
# intl alone splits at symbols.
printf 'pay a total of €5 now\n' >hypothesis
printf 'pay a total of € 5 now\n' >reference
bleu 'case:mixed\|eff:no\|tok:intl' '100\.00 ' --tokenize intl
bleu 'case:mixed\|eff:no\|tok:13a' '45\.48 ' --tokenize 13a
grep -qx 'exact match = 0.00 % (0 of 1 lines)' scores.txt || fail "$(cat scores.txt)"

# Several references are alternatives, line for line; perplexity is that of the first.
"$GLOSS" evaluate --hypothesis dates/test.iso --reference dates/test.iso dates/test.src >same.txt
grep -qE '^BLEU\|nrefs:2\|case:mixed\|eff:no\|tok:13a\|.* = 100\.0' same.txt || fail "$(cat same.txt)"
grep -qx 'exact match = 100.00 % (20 of 20 lines)' same.txt || fail "$(cat same.txt)"
sed '11,$s/$/ x/' dates/test.iso >first.ref
sed '1,10s/$/ x/' dates/test.iso >second.ref
"$GLOSS" evaluate --hypothesis dates/test.iso --reference first.ref second.ref --json >two.json
"$GLOSS" evaluate --hypothesis dates/test.iso --reference first.ref --json >one.json
python3 - one.json two.json <<'PYTHON' || fail "references are no alternatives: $(cat one.json two.json)"
import json, sys
one, two = (json.load(open(name)) for name in sys.argv[1:])
assert "perplexity" not in one and "perplexity" not in two
assert one["bleu"]["signature"].startswith("nrefs:1|") and two["bleu"]["signature"].startswith("nrefs:2|")
assert one["exact_match"] == {"count": 10, "percent": 50.0}, one
assert two["exact_match"] == {"count": 20, "percent": 100.0}, two
assert one["bleu"]["score"] < 99 < two["bleu"]["score"] and one["chrf"]["score"] < 99 < two["chrf"]["score"]
PYTHON
"$GLOSS" evaluate model --source dates/test.src --reference dates/test.iso dates/test.src --max-length 12 >two.txt
sed -n 's/of the reference/of the first reference/;/perplexity/p' evaluated.log | diff - <(grep perplexity two.txt) ||
  fail "the perplexity is not that of the first reference"

# An option of translating is heeded.
"$GLOSS" evaluate model --source dates/test.src --reference dates/test.iso --output greedy.txt --beam 1 --max-length 6 >/dev/null
"$GLOSS" translate model --beam 1 --max-length 6 dates/test.src | diff - greedy.txt || fail "evaluate translates otherwise"

# A text that cannot be used leaves what was there.
echo before >out.txt
head -n 3 dates/test.iso >three.iso
expect_failure 1 'dates/test.src has 20 lines and three.iso has 3: each line needs its reference' \
  "$GLOSS" evaluate model --source dates/test.src --reference dates/test.iso three.iso --output out.txt
expect_equal "the file that was there" "$(cat out.txt)" before
