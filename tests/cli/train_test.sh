#!/usr/bin/env bash
# gloss train as scripts use it: signals, kill -9, two at once, a full disk, and every way to call it wrong.
source "$TESTS_CLI/common.sh"

"$GLOSS_DATES" --output dates --seed 3 --train 600 --valid 20 --test 20 --heldout 20 2>/dev/null
options=(--d-model 16 --encoder-layers 1 --decoder-layers 1 --encoder-heads 2 --decoder-heads 2
  --encoder-ff 32 --decoder-ff 32 --vocab-size 150 --batch-tokens 300 --average 3)
valid=(--valid dates/valid.src dates/valid.iso)
train_texts=(--train dates/train.src dates/train.iso)

# start FOLDER OPTIONS...: becomes the program, so that `start ... &` leaves its process in $!
start() {
  exec "$GLOSS" train "${options[@]}" "${valid[@]}" "${train_texts[@]}" --output "$@"
}

train() {
  (start "$@")
}

# begin FOLDER OPTIONS...: the same in the background, as $pid; what it says is read by hear and end, so that nothing
# here waits for a time to pass.
mkfifo messages
begin() {
  start "$@" 2>messages &
  pid=$!
  exec {heard}<messages
  : >log
}

# hear PATTERN: reads until a line matches (extended regular expression)
hear() {
  local line
  while IFS= read -r line <&"$heard"; do
    printf '%s\n' "$line" >>log
    [[ ! $line =~ $1 ]] || return 0
  done
  fail "it never said '$1': $(cat log)"
}

# end STATUS...: it ends with one of these; log has all that it said
end() {
  local status=0
  wait $pid 2>/dev/null || status=$?
  cat <&"$heard" >>log
  exec {heard}<&-
  [[ " $* " == *" $status "* ]] || fail "it ended with status $status, not $*: $(cat log)"
}

said() { # said PATTERN
  grep -qE -- "$1" log || fail "it should have said '$1': $(cat log)"
}

# train_on SRC TGT: on other texts, into a new folder
train_on() {
  "$GLOSS" train "${options[@]}" "${valid[@]}" --train "$1" "$2" --output "${@:3}"
}

# The numbers of a state without its header, which tells how long it took.
numbers() {
  local header
  header=$(od -An -t u8 -N 8 "$1/training/state.safetensors")
  tail -c "+$((header + 9))" "$1/training/state.safetensors"
}

expect_same_run() {
  cmp <(numbers "$1") <(numbers "$2") || fail "$1 and $2 have different states"
  cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$1 and $2 have different models"
}

# SIGTERM and SIGINT save and leave; a second process stays out meanwhile; the same command goes on.
for signal in TERM INT; do
  begin "$signal" --patience 0 --validate-every 40
  hear 'update 40:'
  expect_failure 1 "another process is training into $signal: wait for it to end" \
    train "$signal" --patience 0 --validate-every 40
  kill -"$signal" $pid
  end $((128 + $(kill -l $signal)))
  said 'interrupted after update [0-9]+: the same command goes on'
  updates=$(($(sed -nE 's/^interrupted after update ([0-9]+).*/\1/p' log) + 30))
  train "$signal" --patience 0 --validate-every 40 --max-updates $updates 2>log
  said 'going on after update'
  said "stopped after $updates updates"
  train whole --overwrite --patience 0 --validate-every 40 --max-updates $updates 2>/dev/null
  expect_same_run whole "$signal"
done

# A second signal of the other kind leaves at once. Both come to a program that is held, so that it cannot end in
# between; what was saved before stays.
for signals in "TERM INT" "INT TERM"; do
  folder=twice-${signals% *}
  begin "$folder" --patience 0 --validate-every 40 --threads 1
  hear 'update 80: validation'
  kill -STOP $pid
  for signal in $signals; do kill -"$signal" $pid; done
  kill -CONT $pid
  end 130 143
  ! grep -q interrupted log || fail "it took its time after a second signal: $(cat log)"
  train "$folder" --patience 0 --validate-every 40 --max-updates 1 2>log
  said 'going on after update [0-9]+'
done

# --overwrite goes on over its own beginning, and starts anew over anything else.
begin over --patience 0 --validate-every 40 --overwrite
hear 'update 40:'
kill -TERM $pid
end 143
updates=$(($(sed -nE 's/^interrupted after update ([0-9]+).*/\1/p' log) + 30))
train over --patience 0 --validate-every 40 --overwrite --max-updates $updates 2>log
said 'going on after update [0-9]+ .*--overwrite began'
train whole --overwrite --patience 0 --validate-every 40 --max-updates $updates 2>/dev/null
expect_same_run whole over
train over --patience 0 --validate-every 40 --overwrite --max-updates 3 2>log
said 'stopped after 3 updates'

# kill -9, thrice, on another number of threads each time.
for threads in 1 2 3; do
  begin killed --save-every 7 --patience 0 --threads $threads
  hear 'update [0-9]+: validation'
  kill -KILL $pid
  end 137
  "$GLOSS" translate killed <dates/test.src >out.txt || fail "no whole model after kill -9"
  expect_equal "lines translated" "$(wc -l <out.txt)" "$(wc -l <dates/test.src)"
done
train killed --save-every 7 --patience 0 --max-updates 1 2>log # it is further already, and says how far
updates=$(($(sed -nE 's/^going on after update ([0-9]+).*/\1/p' log) + 30))
train killed --save-every 7 --patience 0 --max-updates $updates 2>/dev/null
train whole --overwrite --save-every 7 --patience 0 --max-updates $updates 2>/dev/null
expect_same_run whole killed

# Given again, a finished run is left alone.
touch -d '2001-01-01' whole/model.safetensors
train whole --save-every 7 --max-updates $updates 2>log
said "nothing to do: whole holds this run, which ended after $updates updates"
expect_equal "year of the model" "$(date -r whole/model.safetensors +%Y)" 2001
cp -r whole before

# Another run's folder, a model's folder, and a text that changed.
expect_failure 1 'whole holds a run with --dropout 0.1, and this command says 0.3' train whole --dropout 0.3
mkdir foreign
touch foreign/config.json
expect_failure 1 'foreign holds a model already: .*--overwrite' train foreign
[[ ! -e foreign/training ]] || fail "a refused folder was written into"
sed '1s/$/ x/' dates/train.src >changed.src
expect_failure 1 'whole holds a run on another training text' \
  train_on changed.src dates/train.iso whole --save-every 7 --max-updates $updates

# A full disk: the state and the model of before stay, the exit status is 1, and the run goes on later.
full() (
  trap '' XFSZ # as on a full disk, write() then fails instead of ending the program
  ulimit -f 12 # KiB: the model fits, the state does not
  train whole --save-every 7 --max-updates $((updates + 150))
)
status=0
full 2>log || status=$?
expect_equal "status with a full disk" $status 1
grep -qE '^gloss: cannot write .*(intact)' log || fail "a full disk should be said in one sentence: $(cat log)"
expect_same_run whole before
train whole --save-every 7 --max-updates $((updates + 10)) 2>/dev/null

# Folders that cannot be written to are told before any work.
expect_failure 1 'cannot .*the folder /proc/' train /proc/model
touch file
expect_failure 1 'cannot write into file: it is a file' train file
# Permissions mean nothing to root, so a nobody tries what they forbid.
unprivileged() {
  if [[ $(id -u) -ne 0 ]]; then "$@"; else setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; fi
}
chmod 755 .
if unprivileged test -r dates/train.src && unprivileged test -x "$GLOSS"; then
  mkdir closed
  chmod 555 closed
  expect_failure 1 'cannot write into the folder closed: Permission denied' \
    unprivileged "$GLOSS" train "${valid[@]}" "${train_texts[@]}" --output closed
fi

# Texts that cannot be used.
expect_failure 1 'none.src' train_on none.src dates/train.iso new
: >empty
expect_failure 1 'empty' train_on empty empty new
head -n 7 dates/train.src >seven.src
expect_failure 1 '7 lines.*600|600.*7 lines' train_on seven.src dates/train.iso new
printf 'a\nb\xff\n' >bytes.src
printf 'a\nb\n' >bytes.tgt
expect_failure 1 'line 2' train_on bytes.src bytes.tgt new
printf 'a\nb\0\n' >nul.src
expect_failure 1 'line 2|NUL' train_on nul.src bytes.tgt new
expect_failure 1 '(ELF|binary|NUL|UTF-8)' train_on "$GLOSS" bytes.tgt new
expect_failure 1 'dates' train_on dates dates new
[[ ! -e new ]] || fail "a folder was made for texts that cannot be used"

# CRLF, a byte order mark and a missing last newline make no difference.
{
  printf '\xef\xbb\xbf'
  sed 's/$/\r/' dates/train.src | head -c -2
} >crlf.src
train_on crlf.src dates/train.iso crlf --max-updates 20 2>/dev/null
train plain --max-updates 20 2>/dev/null
expect_same_run crlf plain

# One line is a corpus.
head -n 1 dates/train.src >one.src
head -n 1 dates/train.iso >one.iso
train_on one.src one.iso one --max-updates 3 2>/dev/null
expect_equal "translations" "$("$GLOSS" translate one <dates/test.src | wc -l)" "$(wc -l <dates/test.src)"

# The command line itself.
expect_failure 2 '--train takes two files' "$GLOSS" train --valid a b --output new
expect_failure 2 '--output is missing' "$GLOSS" train "${train_texts[@]}" "${valid[@]}"
expect_failure 2 '--train.*2' "$GLOSS" train --train one --output new
expect_failure 2 'dropout.*from 0 to below 1.*1.5' train new --dropout 1.5
expect_failure 2 'max-updates.*many' train new --max-updates many
expect_failure 2 'preset.*tiny' train new --preset huge
expect_failure 2 '--help' train new --epochs 3

# A run that cannot begin leaves what was there, model or not, and does not claim the folder.
failing() { # failing PATTERN COMMAND...: status 1, and the last line says the pattern
  local status=0
  "${@:2}" 2>log || status=$?
  expect_equal "status of '${*:2}'" $status 1
  tail -n 1 log | grep -qE -- "$1" || fail "'${*:2}' should end with something like '$1', not: $(cat log)"
}
printf '\n%.0s' {1..600} >blank.src
cp -r whole kept
failing 'no pair of blank.src and' train_on blank.src dates/train.iso kept --overwrite
"$GLOSS" translate kept <dates/test.src >out.txt || fail "the model is gone after a run that could not begin"
failing 'no pair of blank.src and' train_on blank.src dates/train.iso claimed
train claimed --max-updates 2 2>log || fail "a run that never began claims the folder: $(cat log)"
mkdir mine
echo mine >mine/train.jsonl
expect_failure 1 'mine holds a file train.jsonl that no run put there' train mine --max-updates 2
expect_equal "a file of the user's" "$(cat mine/train.jsonl)" mine

# What a run needs later is looked for when it goes on, and the message says the way out.
cp -r whole lame
rm "$(find lame/training -name 'parameters-*' | sort | tail -n 1)"
failing 'parameters-.* does not exist.*remove the folder lame/training and give --overwrite' \
  train lame --save-every 7 --max-updates $((updates + 300))
for file in state.safetensors run.json; do
  rm -rf lame && cp -r whole lame && : >lame/training/$file
  failing "$file.*--overwrite" train lame --save-every 7 --max-updates $((updates + 300))
done

# Numbers that cannot work, and more memory than there is.
expect_failure 2 '--adam-epsilon must be a number from 1e-20 to 1' train new --adam-epsilon 0
expect_failure 2 '--encoder-layers must be a whole number from 0 to 1000' \
  "$GLOSS" train --encoder-layers 2147483648
failing 'would take about [0-9]+ MB of memory, and this machine has [0-9]+: ask for a smaller --batch-tokens' \
  "$GLOSS" train "${valid[@]}" "${train_texts[@]}" --vocab-size 150 --encoder-layers 1000 --encoder-ff 16777216 \
  --output huge
