#!/usr/bin/env bash
# Every shared library of the program is on the list beside this script, which says why it may be.
# Usage: licences_test.sh PROGRAM
set -euo pipefail
export LC_ALL=C
program=$1
list=$(dirname "$(readlink -f "$0")")/allowed-libraries

allowed=$(sed 's/#.*//' "$list" | awk 'NF { print $1 }' | sort -u)
loaded=$(ldd "$program" | awk '{ print $1 }' | xargs -n 1 basename | sort -u)
[[ $loaded == *libc.so.6* ]] || {
  echo "ldd $program lists no C library: is it a program?" >&2
  exit 1
}
unknown=$(comm -13 <(echo "$allowed") <(echo "$loaded"))
if [[ -n $unknown ]]; then
  echo "not in $list: $unknown" >&2
  echo "Add it there with its licence, which must not be the GPL." >&2
  exit 1
fi
echo "$loaded"
