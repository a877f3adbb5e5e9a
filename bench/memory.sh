#!/usr/bin/env bash
# Memory of `gloss train` on a corpus as it is and repeated to 5 million lines:
#   bench/memory.sh PROGRAM SRC TGT VALID_SRC VALID_TGT [OPTIONS OF gloss train...]
# The texts may be compressed by gzip. Prints, for both sizes, the peak of the whole run (making the vocabulary
# included) and the peak from the moment training begins. The larger corpus may take 100 MB more and 64 bytes a
# line: the status is 1 when it takes more.
set -euo pipefail
lines=5000000
updates=20

[[ $# -ge 5 ]] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
program=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
texts=(train.src train.tgt valid.src valid.tgt)
for i in 0 1 2 3; do
  file=${*:$((i + 2)):1}
  zcat -f -- "$file" >"$work/${texts[$i]}"
done
shift 5

# peak PID FIELD: kilobytes; nothing when the process has ended
field() { sed -nE "s/^$2:[[:space:]]*([0-9]+) kB/\1/p" "/proc/$1/status" 2>/dev/null || true; }

# measure SRC TGT: sets whole and training, in kilobytes
measure() {
  "$program" train --train "$1" "$2" --valid "$work/valid.src" "$work/valid.tgt" --output "$work/model" \
    --overwrite --max-updates $updates "${@:3}" 2>"$work/log" &
  local pid=$! begun=0 now
  whole=0 training=0
  while kill -0 $pid 2>/dev/null; do
    now=$(field $pid VmHWM)
    if [[ -n $now ]]; then
      if ((begun == 0)) && grep -q ' parameters; ' "$work/log"; then
        begun=1
        echo 5 >/proc/$pid/clear_refs # the peak begins anew (Linux, man 5 proc)
        now=$(field $pid VmHWM)
      fi
      ((begun == 0)) || training=${now:-$training}
      ((${now:-0} <= whole)) || whole=$now
    fi
    sleep 0.02
  done
  wait $pid || { cat "$work/log" >&2; exit 1; }
}

small_lines=$(wc -l <"$work/train.src")
measure "$work/train.src" "$work/train.tgt" "$@"
small_whole=$whole small=$training
echo "$small_lines lines: $((small / 1024)) MB while training, $((small_whole / 1024)) MB at the peak of the whole run"

times=$(((lines + small_lines - 1) / small_lines))
for text in train.src train.tgt; do
  for ((i = 0; i < times; ++i)); do cat "$work/$text"; done >"$work/large.${text#train.}"
done
large_lines=$(wc -l <"$work/large.src")
measure "$work/large.src" "$work/large.tgt" "$@"
echo "$large_lines lines: $((training / 1024)) MB while training, $((whole / 1024)) MB at the peak of the whole run"

allowed=$((100 * 1024 + 64 * large_lines / 1024))
echo "difference while training: $(((training - small) / 1024)) MB; allowed: $((allowed / 1024)) MB"
((training - small <= allowed))
