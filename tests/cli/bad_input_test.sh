#!/usr/bin/env bash
# Every bad input gives one clear sentence and a status that is not 0, and loses nothing.
source "$TESTS_CLI/common.sh"

tiny_model good
head -n 3 dates/test.src >three.src
chmod 755 .
# Permissions mean nothing to root, so a nobody tries what they forbid.
unprivileged() {
  if [[ $(id -u) -ne 0 ]]; then "$@"; else setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; fi
}
copy() { rm -rf bad && cp -r good bad; }
translate() { "$GLOSS" translate "$@"; }

# Text.
expect_failure 1 'nowhere.txt does not exist' translate good nowhere.txt
expect_failure 1 'good is a folder, but a text file is expected' translate good good
expect_failure 1 'line 1 of binary holds a NUL byte' \
  bash -c 'head -c 3000 /dev/zero >binary; exec "$0" translate good binary' "$GLOSS"
printf 'one\ntwo\nth\xFFree\n' >invalid.src
# What stands before the bad line is translated.
status=0
translate good invalid.src >stdout.txt 2>stderr.txt || status=$?
expect_equal "status" $status 1
expect_equal "lines before the invalid one" "$(wc -l <stdout.txt)" 2
grep -qE 'line 3 of invalid.src is not valid UTF-8 \(byte 3 of the line is 0xFF\).*--replace-invalid' stderr.txt ||
  fail "$(cat stderr.txt)"
expect_failure 1 'line 3 of invalid.src is not valid UTF-8' translate good invalid.src --output nothing.txt
[[ ! -e nothing.txt ]] || fail "a failed translation left a file"
expect_equal "lines with replaced bytes" "$(translate good invalid.src --replace-invalid 2>/dev/null | wc -l)" 3
printf 'one\ntw\0o\n' >nul.src
expect_failure 1 'line 2 of nul.src holds a NUL byte' translate good nul.src --output nothing.txt
gzip -c three.src >three.gz
expect_failure 1 'three.gz is compressed with gzip' translate good three.gz
iconv -t UTF-16 three.src >utf16.src
expect_failure 1 'UTF-16' translate good utf16.src
expect_failure 1 'three.src has 3 lines and dates/test.iso has 20' "$GLOSS" evaluate --hypothesis three.src --reference dates/test.iso
expect_failure 1 'three.src has 3 lines and dates/test.iso has 20' \
  "$GLOSS" score good --source three.src --target dates/test.iso --output nothing.txt
expect_failure 1 'holds no line' "$GLOSS" evaluate --hypothesis /dev/null --reference /dev/null
if unprivileged test -r three.src; then
  cp three.src secret.src && chmod 000 secret.src
  expect_failure 1 'secret.src cannot be opened' unprivileged "$GLOSS" translate good secret.src
fi

# Model folders.
expect_failure 1 'nowhere' translate nowhere three.src
expect_failure 1 'three.src' translate three.src three.src
mkdir -p empty
expect_failure 1 'empty/config.json' translate empty three.src
for file in config.json model.safetensors vocab.json source.spm target.spm; do
  copy && rm bad/$file
  expect_failure 1 "bad/$file" translate bad three.src
  copy && : >bad/$file
  expect_failure 1 "bad/$file" translate bad three.src
  copy && head -c 500 /dev/urandom >bad/$file
  expect_failure 1 "bad/$file" translate bad three.src
done
copy && truncate -s -100 bad/model.safetensors
expect_failure 1 'bad/model.safetensors' translate bad three.src
copy && printf '\0\0\0\0\0\0\0\x10' | dd of=bad/model.safetensors conv=notrunc status=none
expect_failure 1 'bad/model.safetensors.*header' translate bad three.src
copy && sed -i 's/"model_type": *"marian"/"model_type": "bert"/' bad/config.json
expect_failure 1 'bad/config.json.*bert' translate bad three.src
copy && sed -i 's/"d_model": *16/"d_model": 24/' bad/config.json
expect_failure 1 'bad' translate bad three.src
copy && sed -i 's/"d_model": *16/"d_model": 1000000000/' bad/config.json
expect_failure 1 'bad' translate bad three.src
copy && python3 -c '
import json
v = json.load(open("bad/vocab.json"))
last = max(v, key=v.get)  # <pad>; the piece before it goes
gone = max((p for p in v if p != last), key=v.get)
v[last] = v.pop(gone)
json.dump(v, open("bad/vocab.json", "w"))'
expect_failure 1 'bad/vocab.json has 199 pieces, but the model has embeddings for 200' translate bad three.src
copy && python3 -c '
import json
v = json.load(open("bad/vocab.json"))
del v[min((p for p in v if v[p] > 10), key=v.get)]
json.dump(v, open("bad/vocab.json", "w"))'
expect_failure 1 'bad/vocab.json' translate bad three.src
copy && python3 -c '
import json
v = json.load(open("bad/vocab.json"))
a, b = sorted((p for p in v if v[p] > 10), key=v.get)[:2]
v[b] = v[a]
json.dump(v, open("bad/vocab.json", "w"))'
expect_failure 1 'bad/vocab.json the pieces .* and .* both have the id 11' translate bad three.src
copy && printf '\0\0junk' >>bad/config.json
expect_failure 1 'bad/config.json: not valid JSON: a NUL byte' translate bad three.src
copy && sed -i 's/"layer_norm_epsilon": *[^,]*/"layer_norm_epsilon": -1/' bad/config.json
expect_failure 1 'bad/config.json.*epsilon' translate bad three.src
copy && ln -sf generation_config.json bad/generation_config.json
expect_failure 1 'bad/generation_config.json cannot be opened' translate bad three.src
# A model that gives NaN names the line, whoever asks.
copy && python3 -c '
import json, struct
data = bytearray(open("bad/model.safetensors", "rb").read())
start = 8 + struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:start])["final_logits_bias"]["data_offsets"]
data[start + begin:start + end] = struct.pack("<f", float("nan")) * ((end - begin) // 4)
open("bad/model.safetensors", "wb").write(data)'
(echo && cat three.src) >four.src
expect_failure 1 'line 2: the model gives NaN' "$GLOSS" score bad --source four.src --target four.src --output nothing.txt
expect_failure 1 'line [2-4]: the model gives NaN' translate bad four.src --output nothing.txt
for command in info "evaluate --source three.src --reference three.src" "score --source three.src --target three.src"; do
  # shellcheck disable=SC2086
  expect_failure 1 'nowhere' "$GLOSS" ${command%% *} nowhere $([[ $command == *' '* ]] && echo "${command#* }")
done

# Outputs.
expect_failure 1 'no-such-folder' translate good three.src --output no-such-folder/out.txt
expect_failure 1 'good' translate good three.src --output good
translate good three.src >wanted.txt
echo before >out.txt
status=0
translate good three.src >/dev/full 2>stderr.txt || status=$?
expect_equal "status with a full disk" $status 1
grep -q 'No space left on device' stderr.txt || fail "a full disk: $(cat stderr.txt)"
expect_equal "lines about a full disk" "$(wc -l <stderr.txt)" 1
expect_failure 1 'No space left on device' translate good three.src --output /dev/full
expect_failure 1 'No space left on device|/dev/full' "$GLOSS" score good --source three.src --target three.src --output /dev/full
printf 'one\n\xFF\n' >bad.src
expect_failure 1 'bad.src' translate good bad.src --output out.txt
expect_equal "the file that was there" "$(cat out.txt)" before
if unprivileged test -r three.src; then
  mkdir closed && chmod 555 closed
  expect_failure 1 'closed' unprivileged "$GLOSS" translate good three.src --output closed/out.txt
  cp -r good locked && chmod 000 locked
  expect_failure 1 'locked' unprivileged "$GLOSS" translate locked three.src
fi
translate good three.src --output out.txt
diff out.txt wanted.txt || fail "the good model no longer translates"
