#!/usr/bin/env bash
# Command lines that mean nothing: one sentence in our words, status 2, and nothing done.
source "$TESTS_CLI/common.sh"

tiny_model model
cp dates/test.src keep.src
score=("$GLOSS" score model --source dates/test.src --target dates/test.iso)
evaluate=("$GLOSS" evaluate --hypothesis dates/test.iso --reference)

# An option without its value must not take what stands behind it.
expect_failure 2 '^gloss: --output= has no value' "$GLOSS" translate model --output= keep.src
cmp -s keep.src dates/test.src || fail "an input was overwritten"
expect_failure 2 '--beam= has no value' "$GLOSS" translate model --beam= --threads 1
expect_failure 2 '--max-updates= has no value' "$GLOSS" train --max-updates= 5

# An empty name is a script's empty variable, not an option left out: of every option of every command that names
# files, as its help shows it.
expect_empty_names_refused() { # COMMAND...
  local option kind more
  while read -r option kind more; do
    case $kind in
      FILE | FILE... | GOLD | MODEL | DIR) expect_failure 2 "$option is given an empty name" "$GLOSS" "$@" "$option" "" ;;
      SRC) expect_failure 2 "$option is given an empty name" "$GLOSS" "$@" "$option" "" x ;;
      *) continue ;;
    esac
    empty_names=$((empty_names + 1))
  done < <("$GLOSS" "$@" --help-all | grep -E '^ +--')
}
empty_names=0
for command in train translate score evaluate info quantize attend align shortlist plot; do
  expect_empty_names_refused $command
done
for experiment in $("$GLOSS" lab --help | sed -nE 's/^  ([a-z-]+)  .*/\1/p'); do
  expect_empty_names_refused lab "$experiment"
done
[[ $empty_names -ge 35 ]] || fail "only $empty_names options that name files were found"

# A switch takes no value.
for switch in --json --scores --no-cache --no-copy-unknown; do
  for value in maybe 7 x; do
    expect_failure 2 "$switch" "$GLOSS" translate model $switch=$value keep.src
  done
done
expect_failure 2 '--json' "$GLOSS" info model --json=perhaps
expect_failure 2 '--lowercase' "${evaluate[@]}" dates/test.iso --lowercase=abc

# Too many, too few, unknown.
expect_failure 2 '--beam takes one value, and stands once; see gloss translate --help' \
  "$GLOSS" translate model --beam 3 --beam 4
expect_failure 2 '--beam needs a value behind it: --beam N; see gloss translate --help' "$GLOSS" translate model --beam
expect_failure 2 '--train takes 2 values \(SRC TGT\)' "$GLOSS" train --train one.src
expect_failure 2 '--reference takes at least 1 value' "${evaluate[@]}"
expect_failure 2 'there is no option --beam; see gloss score --help' "${score[@]}" --beam 3
expect_failure 2 'MODEL is required' "$GLOSS" translate
expect_failure 2 'standard input can be read once' "$GLOSS" score model --source - --target -
expect_failure 2 'standard input can be read once' "${evaluate[@]}" - /dev/stdin

# Names that a terminal would obey are shown, not sent.
expect_failure 1 'x1B\[31m' "$GLOSS" translate model $'\e[31mred'
expect_failure 1 'no model folder .{200,300}\.\.\..{100,200}: check|cannot be opened \(File name too long\)' \
  "$GLOSS" translate "$(printf 'x%.0s' {1..5000})"
ln -s loop loop
expect_failure 1 'loop cannot be opened \(Too many levels of symbolic links\)' "$GLOSS" translate loop
expect_failure 1 'keep.src is a file, but a model folder is expected' "$GLOSS" translate keep.src
expect_failure 1 "no model folder ''" "$GLOSS" translate ''
