#!/usr/bin/env bash
# gloss lab: exit status, --break, figures, what it refuses. The claims themselves are tests of the library.
source "$TESTS_CLI/common.sh"

"$GLOSS" lab --help >help.txt
experiments=$(sed -n 's/^  \([a-z-]*\)  .*/\1/p' help.txt | grep -v '^--')
expect_equal "number of experiments" "$(wc -w <<<"$experiments")" 16
for name in saturation masks feed-forward; do
  "$GLOSS" lab $name >said.txt || fail "$name: $(cat said.txt)"
  grep -q '^holds: ' said.txt || fail "$name claims nothing: $(cat said.txt)"
  status=0
  "$GLOSS" lab $name --break >said.txt || status=$?
  expect_equal "status of $name --break" $status 1
  grep -q '^FAILS: ' said.txt || fail "$name does not say what fails: $(cat said.txt)"
done
if "$GLOSS" lab scaling --samples 1000 --output figure.svg >/dev/null 2>said.txt; then
  grep -q '<svg' figure.svg || fail "figure.svg is none"
else
  grep -q "pictures" said.txt || fail "$(cat said.txt)"
fi
expect_failure 2 "lab needs the name of one of its parts; see gloss lab --help" "$GLOSS" lab
expect_failure 2 "one of its parts, and none is called 'scalin'; see gloss lab --help" "$GLOSS" lab scalin
expect_failure 2 "one of its parts before '--break'; see gloss lab --help" "$GLOSS" lab --break
expect_failure 2 "--break belongs behind scaling; see gloss lab scaling --help" "$GLOSS" lab --break scaling
expect_failure 2 "no option --outptu; see gloss lab scaling --help" "$GLOSS" lab scaling --outptu x
expect_failure 2 "--figure is for the figure: add --output" "$GLOSS" lab positions --figure lengths
expect_failure 2 "--samples must be" "$GLOSS" lab scaling --samples many
expect_failure 2 "svg.*png.*pdf" "$GLOSS" lab scaling --output figure.gif
printf 'x,y\n1,2\n2,tall\n' >own.csv
expect_failure 1 "own.csv, line 3.*number.*tall" "$GLOSS" lab kernel-regression --data own.csv
