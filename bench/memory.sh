#!/usr/bin/env bash
# The memory that training takes on a corpus as it is, and on the same lines repeated to 5 million.
# Usage: bench/memory.sh [SRC TGT VALID_SRC VALID_TGT] [--OPTION VALUE ... of gloss train]
#
# Without files it takes Multi30k English-German. The texts may be compressed by gzip. For both sizes it prints the
# peak from the moment training begins, and that of the whole run, the making of the vocabulary included. The larger
# corpus may take 100 MB and 64 bytes a line more while training.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
usage "$@"

lines=5000000 updates=20
need_gloss
make_work
texts=(train.src train.tgt valid.src valid.tgt)
if [[ $# -gt 0 && $1 != -* ]]; then
  [[ $# -ge 4 ]] || die "it needs four files or none, not $#; see --help"
  files=("${@:1:4}")
  shift 4
else
  unpack multi30k train.en train.de val.en val.de
  files=("$work/train.en" "$work/train.de" "$work/val.en" "$work/val.de")
fi
for i in 0 1 2 3; do
  [[ -r ${files[i]} ]] || die "${files[i]} cannot be read"
  zcat -f -- "${files[i]}" >"$work/${texts[i]}"
done
machine

# field PID NAME: kilobytes; nothing when the process has ended
field() { sed -nE "s/^$2:[[:space:]]*([0-9]+) kB/\1/p" "/proc/$1/status" 2>/dev/null || true; }

# measure SRC TGT OPTIONS...: sets whole and training, in kilobytes
measure() {
  "$gloss" train --train "$1" "$2" --valid "$work/valid.src" "$work/valid.tgt" --output "$work/model" \
    --overwrite --max-updates $updates "${@:3}" 2>"$work/log" &
  local pid=$! begun=0 peak
  whole=0 training=0
  while kill -0 $pid 2>/dev/null; do
    peak=$(field $pid VmHWM)
    if [[ -n $peak ]]; then
      if ((begun == 0)) && grep -q ' parameters; ' "$work/log"; then
        begun=1
        echo 5 >/proc/$pid/clear_refs # the peak begins anew (Linux, man 5 proc)
        peak=$(field $pid VmHWM)
      fi
      ((begun == 0)) || training=${peak:-$training}
      ((${peak:-0} <= whole)) || whole=$peak
    fi
    sleep 0.02
  done
  wait $pid || {
    cat "$work/log" >&2
    die "training failed"
  }
  printf '%s lines: %s MB while training, %s MB at the peak of the whole run\n' \
    "$(wc -l <"$1")" $((training / 1024)) $((whole / 1024))
}

measure "$work/train.src" "$work/train.tgt" "$@"
small=$training

small_lines=$(wc -l <"$work/train.src")
times=$(((lines + small_lines - 1) / small_lines))
for text in train.src train.tgt; do
  for ((i = 0; i < times; ++i)); do cat "$work/$text"; done >"$work/large.${text#train.}"
done
measure "$work/large.src" "$work/large.tgt" "$@"

allowed=$((100 * 1024 + 64 * times * small_lines / 1024))
at_most $((training - small)) $allowed
printf '%s MB more while training (needed: %s; %s)\n' $(((training - small) / 1024)) $((allowed / 1024)) "$verdict"
exit $failed
