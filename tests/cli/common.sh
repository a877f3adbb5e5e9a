# For the scripts beside it: source "$TESTS_CLI/common.sh"
set -euo pipefail

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

skip() {
  echo "skipped: $*" >&2
  exit 77
}

# expect_failure STATUS PATTERN COMMAND...: the command ends with this status, says one line on standard error
# that matches the pattern (extended regular expression), and nothing on standard output.
expect_failure() {
  local status=0 want=$1 pattern=$2
  shift 2
  "$@" >stdout.txt 2>stderr.txt || status=$?
  [[ $status -eq $want ]] || fail "'$*' ended with status $status instead of $want: $(cat stderr.txt)"
  [[ $(wc -l <stderr.txt) -eq 1 ]] || fail "'$*' should say one line, not: $(cat stderr.txt)"
  grep -qE -- "$pattern" stderr.txt || fail "'$*' should say something like '$pattern', not: $(cat stderr.txt)"
  [[ ! -s stdout.txt ]] || fail "'$*' wrote to standard output: $(head -n 3 stdout.txt)"
}

# expect_equal WHAT GOT WANTED
expect_equal() { [[ $2 == "$3" ]] || fail "$1 is '$2' and should be '$3'"; }

# tiny_model FOLDER: a model folder of a few thousand numbers, trained for some updates on dates/. What it says
# is nonsense, but the same each time.
tiny_model() {
  [[ -d dates ]] || "$GLOSS_DATES" --output dates --seed 5 --train 300 --valid 20 --test 20 --heldout 20 2>/dev/null
  "$GLOSS" train --train dates/train.src dates/train.iso --valid dates/valid.src dates/valid.iso \
    --output "$1" --vocab-size 200 --d-model 16 --encoder-layers 2 --decoder-layers 2 --encoder-heads 2 \
    --decoder-heads 2 --encoder-ff 32 --decoder-ff 32 --max-updates 20 --batch-tokens 200 2>train.log ||
    fail "training failed: $(cat train.log)"
}
