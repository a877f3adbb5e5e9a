#!/usr/bin/env bash
# Help fits a screen and shows an example; a wrong command line is told from a failure.
source "$TESTS_CLI/common.sh"

"$GLOSS" --version >version.txt
grep -qE '^gloss [0-9]+\.[0-9]+\.[0-9]+$' version.txt || fail "no version: $(cat version.txt)"
grep -qE '^instruction set: (ssse3|sse4|avx2|avx512)$' version.txt || fail "no instruction set: $(cat version.txt)"
grep -q '^matrix products: ' version.txt || fail "no matrix products: $(cat version.txt)"
"$GLOSS" --isa sse4 --version | grep -q '^instruction set: sse4$' || fail "--isa sse4 is not heeded"
GLOSS_ISA=ssse3 "$GLOSS" --version | grep -q '^instruction set: ssse3$' || fail "GLOSS_ISA is not heeded"
"$GLOSS" --gemm own --version | grep -q '^matrix products: own' || fail "--gemm own is not heeded"

"$GLOSS" >none.txt && "$GLOSS" help >help.txt && "$GLOSS" --help >flag.txt
diff none.txt help.txt && diff help.txt flag.txt || fail "no arguments, help and --help differ"
experiments=$("$GLOSS" lab --help | sed -nE 's/^  ([a-z-]+) .*/lab \1/p')
expect_equal "number of experiments" "$(wc -l <<<"$experiments")" 16
commands=$(printf '%s\n' train translate score evaluate info attend align shortlist plot lab "$experiments")
mkdir texts
while read -r command; do
  read -ra words <<<"$command"
  grep -q "^  ${words[0]} " help.txt || fail "help lacks ${words[0]}"
  "$GLOSS" "${words[@]}" --help >"texts/$command"
  "$GLOSS" help "${words[@]}" | diff - "texts/$command" || fail "gloss help $command differs from gloss $command --help"
  [[ $(wc -l <"texts/$command") -le 24 ]] || fail "the help of $command has $(wc -l <"texts/$command") lines"
  "$GLOSS" "${words[@]}" --help-all >"texts/$command --help-all"
done <<<"$commands"
for file in texts/*; do
  command=${file#texts/}
  command=${command% --help-all}
  [[ $(wc -L <"$file") -le 110 ]] || fail "the help of $command is $(wc -L <"$file") characters wide"
  grep -q "^Usage: gloss $command " "$file" || fail "the help of $command has no usage"
  grep -qE "^Example: .*gloss $command" "$file" || fail "the help of $command has no example"
done
# Every option has a description of its own: beside it, or below a long list of choices.
python3 - texts/* <<'PYTHON' || fail "an option has no description of its own"
import re, sys
for name in sys.argv[1:]:
    lines = open(name, encoding="utf-8").read().splitlines()
    options = [i for i, line in enumerate(lines) if line.startswith("  --")]
    assert options or "lab EXPERIMENT" in lines[0], name
    seen = set()
    for i in options:
        match = re.fullmatch(r"  (--[a-z0-9-]+)(?: [^- ]\S*)*(?:  +(\S.*))?", lines[i])
        assert match and (match[2] or re.match(r" {32}\S", lines[i + 1])), (name, lines[i])
        assert match[1] not in seen, (name, lines[i])
        seen.add(match[1])
PYTHON
"$GLOSS" train --help-all | grep -q -- '--attention-dropout' || fail "--help-all of train lacks options"

expect_failure 2 "no-such-option.*gloss translate --help" "$GLOSS" translate model --no-such-option
expect_failure 2 "MODEL is required" "$GLOSS" translate
expect_failure 2 "there is no command 'nothing'; see gloss --help" "$GLOSS" help nothing
expect_failure 2 "there is no command 'lab nothing'; see gloss lab --help" "$GLOSS" help lab nothing
expect_failure 2 "nothing" "$GLOSS" nothing
expect_failure 2 "--beam must be .*not '0'" "$GLOSS" translate model --beam 0
expect_failure 2 "--beam must be a whole number.*not 'five'" "$GLOSS" translate model --beam five
# What would play no part is refused.
for command in "translate model" "evaluate model --source a --reference b"; do
  # shellcheck disable=SC2086
  refuses() { expect_failure 2 "$1" "$GLOSS" $command "${@:2}"; }
  for option in "--temperature 2" "--top-k 3" "--top-p 0.5" "--seed 7"; do
    # shellcheck disable=SC2086
    refuses "^gloss: ${option% *} is for drawing at random: add --sample" $option
  done
  refuses "--beam plays no part in drawing at random" --sample --beam 4
  refuses "--length-penalty changes no text that is drawn" --sample --length-penalty 0.6
  refuses "--copy-unknown is what --plain switches off" --plain --copy-unknown
done
expect_failure 1 "nowhere" "$GLOSS" translate nowhere --sample --length-penalty 0.6 --n-best 3
expect_failure 1 "nowhere" "$GLOSS" translate nowhere --sample --length-penalty 0.6 --scores
expect_failure 1 "nowhere" "$GLOSS" translate nowhere --plain --no-copy-unknown
expect_failure 2 "--n-best changes nothing" "$GLOSS" evaluate model --source a --reference b --n-best 3
for option in "--beam 2" "--sample" "--no-cache" "--threads 1" "--no-copy-unknown" "--max-length 9"; do
  # shellcheck disable=SC2086
  expect_failure 2 "--hypothesis is scored as it stands: leave out ${option% *}\$" \
    "$GLOSS" evaluate --hypothesis a --reference b $option
done
expect_failure 2 "n-best is 8" "$GLOSS" translate model --beam 4 --n-best 8
expect_failure 2 "min length 9 is greater than max length 3" "$GLOSS" translate model --min-length 9 --max-length 3
expect_failure 2 "--plain switches off n-gram blocks" "$GLOSS" translate model --plain --no-repeat-ngram 3
expect_failure 2 "score needs --source FILE and --target FILE" "$GLOSS" score model
expect_failure 2 "evaluate needs --reference FILE" "$GLOSS" evaluate model --source a
expect_failure 2 "evaluate needs MODEL and --source" "$GLOSS" evaluate --reference a
expect_failure 2 "leave out MODEL" "$GLOSS" evaluate model --hypothesis a --reference b
expect_failure 2 "avx1024" "$GLOSS" --isa avx1024 --version
expect_failure 2 "mmx" env GLOSS_ISA=mmx "$GLOSS" --version
expect_failure 2 "blas" "$GLOSS" --gemm blas --version
