# Shared by ./quickstart, ./test and .ci/run; sourced, not run.

started=$SECONDS

# say WORDS...: one line of progress with the time since the start.
say() { printf '[%d:%02d] %s\n' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Package names of list files: one a line, # starts a comment.
packages_in() { sed 's/#.*//' "$@" | xargs -n 1; }

missing_packages() {
  local package
  packages_in "$@" | while read -r package; do
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || echo "$package"
  done
}

# install_packages LIST...: installs what is missing of the lists, and does not touch apt when nothing is.
install_packages() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    die "this needs apt-get (Debian 12); elsewhere install the counterparts of $* and build with CMake"
  local missing as_root=() log
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "packages: all $(packages_in "$@" | wc -l) are installed"
    return
  fi
  say "packages: installing ${missing[*]}"
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "installing needs root and there is no sudo; as root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  log=$(mktemp)
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "apt-get failed (its last lines are above, all of them in $log); run this again, or install by hand: ${missing[*]}"
  }
  rm -f "$log"
  say "packages: done"
}
