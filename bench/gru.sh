#!/usr/bin/env bash
# The bidirectional GRU encoder, forward and backward, in turns with PyTorch's nn.GRU: source tokens a second.
# Usage: bench/gru.sh [--rounds N] [--batches N] [--sentences N] [--d-in N] [--d-h N] [--threads N] [--mixed]
#   GLOSS_GRU_BENCH   the program (build/ci/bin/gru_bench: configure with -DGLOSS_BENCH=ON)
#   GLOSS_PEERS_VENV  a Python environment with torch
#
# Batches of so many sentences (300) have the lengths of Multi30k's English side in words, with the end symbol,
# and are of like length, as trainers sort them; --mixed takes the sentences as they come. PyTorch gets packed
# sequences, which compute no padding either. Making them is not timed, nor are the first three batches. Each
# round runs both, one after another.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

rounds=5 batches=40 sentences=300 d_in=128 d_h=256 threads=2 order=sorted
while [[ $# -gt 0 ]]; do
  case $1 in
    --rounds) rounds=$2; shift ;;
    --batches) batches=$2; shift ;;
    --sentences) sentences=$2; shift ;;
    --d-in) d_in=$2; shift ;;
    --d-h) d_h=$2; shift ;;
    --threads) threads=$2; shift ;;
    --mixed) order=mixed ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift
done
program=${GLOSS_GRU_BENCH:-$repo/build/ci/bin/gru_bench}
[[ -x $program ]] || die "there is no program at $program: build it \
(cmake --preset ci && cmake --build --preset ci --target gru_bench gloss) or set GLOSS_GRU_BENCH"
python=${GLOSS_PEERS_VENV:?set it to a Python environment with torch}/bin/python3
need_gloss
make_work
unpack multi30k/tok train.lc.norm.tok.en
machine

# A fixed permutation of all lengths; sorted within what all batches take, and the batches shuffled again.
awk 'BEGIN { srand(17) } { print rand() "\t" NF + 1 }' "$work/train.lc.norm.tok.en" | sort -g | cut -f 2 \
  >"$work/shuffled"
head -n $(((batches + 3) * sentences)) "$work/shuffled" >"$work/lengths"
if [[ $order == sorted ]]; then sort -n "$work/lengths" -o "$work/lengths"; fi
awk -v n="$sentences" '{ printf "%s%s", $0, NR % n ? " " : "\n" }' "$work/lengths" |
  awk 'BEGIN { srand(19) } { print rand() "\t" $0 }' | sort -g | cut -f 2 >"$work/batches"
tokens=$(awk '{ n += $1 } END { print n }' "$work/lengths")
printf '%s batches of %s sentences (%s), %s tokens, d_in %s, d_h %s, %s threads\n' \
  "$batches" "$sentences" "$order" "$tokens" "$d_in" "$d_h" "$threads"

for ((round = 1; round <= rounds; ++round)); do
  ours=$("$program" "$work/batches" "$d_in" "$d_h" "$threads")
  theirs=$(PYTHONDONTWRITEBYTECODE=1 "$python" "$bench/gru_torch.py" "$work/batches" "$d_in" "$d_h" \
    "$threads")
  calculate "$ours / $theirs" >>"$work/ratios"
  echo >>"$work/ratios"
  printf 'round %s: gloss %s tokens/s, PyTorch %s\n' "$round" "$ours" "$theirs"
done
read -r median least greatest < <(sort -g "$work/ratios" | awk '
  { r[NR] = $1 } END { print (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2, r[1], r[NR] }')
at_least "$median" 1.5
printf 'gloss / PyTorch: median %.2f, from %.2f to %.2f (needed: 1.5; %s)\n' "$median" "$least" "$greatest" \
  "$verdict"
exit $failed
