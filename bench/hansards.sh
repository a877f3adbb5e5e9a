#!/usr/bin/env bash
# Word alignment: trains `tiny` with guided attention on Multi30k and the PO files, English to French, and
# measures the alignment error rate on the hand-aligned Hansards. Usage: bench/hansards.sh OUTPUT [--OPTION VALUE ...]
#
# hansards_text.py makes the texts, word_links.py the links that one head of cross-attention is guided by; neither
# sees a link that a person drew. Options are those of gloss train. Given again, it goes on where it was.
# Needs python3 with polib and numpy (Debian: python3-polib, python3-numpy); PYTHON names another one.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"
[[ $# -ge 1 && $(($# % 2)) -eq 1 ]] || die "it needs an output folder, and options in pairs; see --help"
output=$1
shift

need_gloss
make_work
python=${PYTHON:-/usr/bin/python3}
data=$shared/data
[[ -d $data ]] || die "there is no $data: set GLOSS_SHARED to the folder that holds data/"
"$python" "$bench/hansards_text.py" "$data" "$work"
"$python" "$bench/word_links.py" "$work/train.en" "$work/train.fr" >"$work/links"
machine
"$gloss" train --train "$work/train.en" "$work/train.fr" --valid "$work/valid.en" "$work/valid.fr" \
  --output "$output" --preset tiny --vocab-size 8000 --dropout 0.2 --batch-tokens 2048 --warmup 1000 \
  --guided-alignment "$work/links" --average 4 --max-epochs 12 --patience 0 --seed 1 "$@"

for least in 0 0.4; do
  echo "+ gloss align $output --source hansards.en --target hansards.fr --minimum $least"
  "$gloss" align "$output" --source "$work/hansards.en" --target "$work/hansards.fr" --minimum "$least" >"$work/align"
  "$gloss" evaluate --alignment-gold "$data/alignment/hansards-enfr.gold" --alignment "$work/align"
done
