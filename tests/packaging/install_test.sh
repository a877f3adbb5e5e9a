#!/usr/bin/env bash
# Installs into an empty prefix, builds examples/embed against that prefix alone, and lets it translate beside the
# installed program.
# Usage: install_test.sh CMAKE SOURCE BUILD CXX GLOSS_DATES
set -euo pipefail
export LC_ALL=C
cmake=$1 source=$2 build=$3 compiler=$4 GLOSS_DATES=$5
source "$source/tests/cli/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

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
GLOSS=$work/prefix/bin/gloss
tiny_model model
mapfile -t sentences < <(head -n 5 dates/test.src)
expect_equal "what examples/embed translates" "$("$work/build/embed" model "${sentences[@]}")" \
  "$(head -n 5 dates/test.src | "$GLOSS" translate model)"
expect_failure 1 '^embed: .*nowhere' "$work/build/embed" nowhere "a sentence"

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
