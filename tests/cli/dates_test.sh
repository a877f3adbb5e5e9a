#!/usr/bin/env bash
# The corpus generator as ./quickstart calls it.
source "$TESTS_CLI/common.sh"

"$GLOSS_DATES" --output one --seed 5 --train 300 --valid 20 --test 20 --heldout 20 2>/dev/null
"$GLOSS_DATES" --output two --seed 5 --train 300 --valid 20 --test 20 --heldout 20 2>/dev/null
"$GLOSS_DATES" --output other --seed 6 --train 300 --valid 20 --test 20 --heldout 20 2>/dev/null
diff -r one two || fail "the same seed gave another corpus"
! cmp -s one/train.src other/train.src || fail "another seed gave the same corpus"
expect_equal "lines of train.src" "$(wc -l <one/train.src)" 300
expect_equal "lines of train.iso" "$(wc -l <one/train.iso)" 300
! grep -vE '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' one/train.iso || fail "an answer is not in ISO form"

"$GLOSS_DATES" --list 1984-05-07 >list.txt
grep -q '  en  the seventh of May, nineteen eighty-four$' list.txt || fail "--list lacks the words"
expect_equal "held-out ways" "$(grep -c 'held out' list.txt)" 10

expect_failure 2 'nothing to do: give --output FOLDER or --list' "$GLOSS_DATES"
expect_failure 2 '--help' "$GLOSS_DATES" --sead 3
expect_failure 2 'leave out --output' "$GLOSS_DATES" --list --output one
expect_failure 2 'leave out --seed' "$GLOSS_DATES" --list 1984-05-07 --seed 3
expect_failure 1 "got '2021-02-30'" "$GLOSS_DATES" --list 2021-02-30
expect_failure 1 'expected between 0 and [0-9]+ pairs of dates for test, got 999999999' \
  "$GLOSS_DATES" --output three --test 999999999
touch file
expect_failure 1 'cannot make the folder file/dates' "$GLOSS_DATES" --output file/dates
