#!/usr/bin/env bash
# Opens a model folder of gloss in transformers and in CTranslate2 and compares what the three make of a text.
# Usage: tests/peers/compare.sh MODEL SOURCE [OPTIONS of compare.py]
# Not part of ./test: it installs the two from PyPI (some GB), once, in build/peers.
#   GLOSS             the program (build/release/bin/gloss)
#   GLOSS_PEERS_VENV  an environment that has what requirements.txt names; nothing is installed then
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
repo=$here/../..

if [[ $# -lt 2 || $1 == -h || $1 == --help ]]; then
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
venv=${GLOSS_PEERS_VENV:-}
if [[ -z $venv ]]; then
  venv=$repo/build/peers
  if [[ ! -e $venv/complete ]]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
    touch "$venv/complete"
  fi
fi
[[ -x $venv/bin/python3 ]] || {
  echo "compare.sh: $venv holds no Python environment; set GLOSS_PEERS_VENV to one or leave it out" >&2
  exit 1
}
exec "$venv/bin/python3" "$here/compare.py" --gloss "${GLOSS:-$repo/build/release/bin/gloss}" "$@"
