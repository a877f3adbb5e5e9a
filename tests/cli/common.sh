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
