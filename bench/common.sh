# Shared by the scripts of this folder; sourced, not run.
#   GLOSS         the program (build/release/bin/gloss)
#   GLOSS_SHARED  the folder with data/ and peers/ (beside the repository)

bench=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
repo=$(dirname "$bench")
gloss=${GLOSS:-$repo/build/release/bin/gloss}
shared=${GLOSS_SHARED:-$repo/../shared}

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage SCRIPT_ARGUMENTS...: with -h or --help prints the comment at the head of the script and leaves.
usage() {
  [[ ${1:-} == -h || ${1:-} == --help ]] || return 0
  sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 0
}

need_gloss() {
  [[ -x $gloss ]] || die "there is no program at $gloss: build it (cmake --preset release && cmake --build --preset release --target gloss) or set GLOSS"
}

# unpack FOLDER_OF_DATA NAME...: the text files, unpacked in $work.
unpack() {
  local folder=$shared/data/$1 name
  shift
  for name; do
    [[ -e $folder/$name.gz ]] || die "there is no $folder/$name.gz: set GLOSS_SHARED to the folder that holds data/"
    gzip -dc "$folder/$name.gz" >"$work/$name"
  done
}

# first_lines COUNT FILE: the first lines of a file, or of Multi30k's English test2016 where FILE is empty.
first_lines() {
  local file=$2
  if [[ -z $file ]]; then
    unpack multi30k test_2016_flickr.en
    file=$work/test_2016_flickr.en
  fi
  head -n "$1" "$file"
}

# A folder that goes when the script ends: $work.
make_work() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
}

# What figures are worth nothing without.
machine() { PYTHONDONTWRITEBYTECODE=1 python3 "$bench/yardstick/machine.py" "$gloss"; }

# at_most VALUE NEEDED sets $verdict to yes or NO and remembers a NO in $failed.
failed=0
at_most() {
  if awk "BEGIN { exit !($1 <= $2) }"; then verdict=yes; else verdict=NO failed=1; fi
}
