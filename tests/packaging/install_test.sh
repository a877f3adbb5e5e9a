#!/usr/bin/env bash
# Installs into an empty prefix, then builds and runs examples/embed against that prefix alone.
# Usage: install_test.sh CMAKE SOURCE BUILD CXX
set -euo pipefail
export LC_ALL=C
cmake=$1 source=$2 build=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
[[ -x $work/prefix/bin/gloss ]] || fail "the program is not installed"
[[ -f $work/prefix/share/doc/gloss/LICENSE ]] || fail "the licence is not installed"
if grep -rn "$source" "$work/prefix/lib" --include='*.cmake'; then
  fail "the installed package names the source tree"
fi

# A copy, so that no header of the source tree is found by its place.
cp -r "$source/examples/embed" "$work/embed"
"$cmake" -S "$work/embed" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler"
"$cmake" --build "$work/build"
output=$("$work/build/embed")
echo "$output"
[[ $output == "[3, 4], last 4"*"[3, 4]"*"[5, 5]"* ]] || fail "examples/embed printed something else"

# Every header must stand alone: a user may include any of them first.
find "$work/prefix/include" -name '*.h' -printf '%P\n' | sort >"$work/headers"
[[ -s $work/headers ]] || fail "no header is installed"
compiles_alone() {
  echo "#include \"$1\"" | "$compiler" -std=c++20 -fsyntax-only -I"$work/prefix/include" -x c++ - ||
    fail "$1 does not compile by itself"
}
export -f compiles_alone fail
export compiler work
xargs -n 1 -P "$(nproc)" bash -c 'compiles_alone "$1"' _ <"$work/headers"
