# Shell functions that the scripts of this folder share. Source it first; it turns strict mode on,
# sets `root` and moves there. It has to work on a bare Debian 12, as root, without a terminal.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C
umask 022

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# Some services start scripts without a home; cargo, pip and npm want one for their caches.
export HOME=${HOME:-$root/target/home}
target_dir=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$HOME" "$target_dir"
rust_version_min=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

say() { printf '%s\n' "$*"; }
fail() {
  printf '%s: %s\n' "${0#"$root"/}" "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# retry COUNT COMMAND...: package mirrors are moody.
retry() {
  local count=$1 i
  shift
  for ((i = 1; i <= count; i++)); do
    "$@" && return 0
    ((i == count)) || sleep $((i * 3))
  done
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    sudo -n "$@"
  else
    fail "this needs root: $*"
  fi
}

apt_updated=
apt_lists_update() {
  [ -z "$apt_updated" ] || return 0
  retry 3 as_root apt-get -qq -o DPkg::Lock::Timeout=300 update || fail "apt-get update failed"
  apt_updated=1
}

# need_apt PACKAGE...: install what is missing, and nothing else. Never removes a package.
need_apt() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  have apt-get || fail "please install: ${missing[*]}"
  apt_lists_update
  DEBIAN_FRONTEND=noninteractive retry 3 as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends --no-remove \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install "${missing[@]}" </dev/null >&2 ||
    fail "could not install ${missing[*]}"
}

# need_command COMMAND PACKAGE...: the same, for those who have the command from elsewhere.
need_command() {
  have "$1" || need_apt "${@:2}"
  have "$1" || fail "no command $1, even with ${*:2}"
}

version_at_least() { # version_at_least HAVE WANTED
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

rustc_version() { "$1" --version 2>/dev/null | awk '{print $2}'; }

# Cargo and rustc from the PATH if they are new enough, else the ones that Debian builds for
# browsers (rustc-web), which is the newest Rust that Debian 12 has.
need_rust() {
  local bin=${CARGO_HOME:-$HOME/.cargo}/bin
  if ! have cargo && [ -x "$bin/cargo" ]; then PATH=$PATH:$bin; fi
  if ! cargo --version >/dev/null 2>&1 ||
    ! version_at_least "$(rustc_version rustc)" "$rust_version_min"; then
    need_debian_rust
    mkdir -p "$target_dir/debian-rust"
    ln -sf /usr/bin/cargo /usr/bin/rustc /usr/bin/rustdoc "$target_dir/debian-rust/"
    PATH=$target_dir/debian-rust:$PATH
    version_at_least "$(rustc_version rustc)" "$rust_version_min" ||
      fail "rustc $rust_version_min or newer is needed"
  fi
  need_command cc gcc libc6-dev
  export PATH CARGO_TERM_COLOR=never CARGO_NET_RETRY=5
}

need_debian_rust() { need_apt cargo-web rustc-web; }
need_rustfmt() { cargo fmt --version >/dev/null 2>&1 || need_apt rustfmt-web; }
need_clippy() { cargo clippy --version >/dev/null 2>&1 || need_apt rust-web-clippy; }

# need_python [PACKAGE...]: `$python` is the interpreter of a virtual environment, with these
# packages in it: target/venv, or $venv if that is set.
need_python() {
  local venv=${venv:-$root/target/venv} base=python3
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    if ! have python3 || ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
      need_apt python3 python3-venv python3-dev
      base=/usr/bin/python3
    fi
    "$base" -m venv "$venv"
  fi
  python=$venv/bin/python
  export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
  (($#)) || return 0
  # A marker for each set of packages saves pip's start when nothing changed.
  local marker versions=(bindings/python/tools.txt ci/versions.txt)
  marker=$venv/.installed-$(printf '%s ' "$@" | cat - "${versions[@]}" | cksum | cut -d ' ' -f 1)
  [ -e "$marker" ] && return 0
  retry 3 "$python" -m pip install --quiet "${versions[@]/#/--constraint=}" "$@" ||
    fail "pip could not install $*"
  touch "$marker"
}

need_node() {
  have node || need_apt nodejs
  have npm || need_apt npm
  export npm_config_fund=false npm_config_audit=false npm_config_update_notifier=false
}

# part NAME COMMAND...: run one part with its output in a log, and print how long it took. The
# first that fails ends the script (with KEEP_GOING=1 the others still run). COMMAND may be a
# function; its exit code 77 says that it cannot run here, and its last line why. part_tests NAME
# COMMAND... also fails when no test ran.
parts_passed=0
parts_failed=0
parts_skipped=0
parts_logs=$target_dir/ci-logs

part() { run_part 0 "$@"; }
part_tests() { run_part 1 "$@"; }

run_part() {
  local wants_tests=$1 name=$2 log status=0 start tests counted=''
  shift 2
  mkdir -p "$parts_logs"
  log=$parts_logs/$(printf '%s' "$name" | tr -cs 'a-zA-Z0-9\n' -).log
  start=$(date +%s%N)
  # Not as a condition: in a condition bash ignores strict mode, and a part would never fail.
  set +e
  in_time "$log" "$@"
  status=$?
  set -e
  if ((status == 77)); then
    skip_part "$name" "$(tail -n 1 "$log")"
    return 0
  fi
  tests=$(tests_counted "$log")
  if ((status == 0 && wants_tests && tests == 0)); then
    say "no test ran" >>"$log"
    status=1
  fi
  if ((status == 0)); then
    ((parts_passed += 1))
    # In one piece: other parts may print at the same moment.
    ((tests == 0)) || counted="  $tests tests"
    printf 'ok      %-34s %8s%s\n' "$name" "$(seconds_since "$start")" "$counted"
    return 0
  fi
  ((parts_failed += 1))
  printf 'FAILED  %-34s %8s  exit code %s; the end of %s:\n' \
    "$name" "$(seconds_since "$start")" "$status" "${log#"$root"/}"
  tail -n "${FAILED_LINES:-80}" "$log" | sed 's/^/    /'
  [ -n "${KEEP_GOING:-}" ] || exit 1
}

# in_time LOG COMMAND...: COMMAND in a shell and a process group of its own, with strict mode, and
# all of the group ended if it hangs.
part_seconds_max=${PART_SECONDS_MAX:-1200}
part_group=
in_time() {
  local log=$1 watchdog status=0
  shift
  set -m
  (
    set -e
    "$@"
  ) </dev/null >"$log" 2>&1 &
  part_group=$!
  (
    sleep "$part_seconds_max"
    echo "still running after $part_seconds_max s" >>"$log"
    kill -TERM -- "-$part_group"
    sleep 5
    kill -KILL -- "-$part_group"
  ) </dev/null >/dev/null 2>&1 &
  watchdog=$!
  set +m
  wait "$part_group" 2>/dev/null
  status=$?
  part_group=
  # A quick part ends before the watchdog has a group.
  kill -TERM -- "-$watchdog" 2>/dev/null || kill -TERM "$watchdog" 2>/dev/null
  wait "$watchdog" 2>/dev/null
  return "$status"
}
# Control-C reaches this shell alone: the parts have groups of their own.
interrupted() {
  [ -z "$part_group" ] || kill -TERM -- "-$part_group" 2>/dev/null
  exit 130
}
trap interrupted INT TERM

# side_by_side COMMAND WORD...: COMMAND with each of the words, all at once, each in a shell of its
# own, for what is mostly one process at a time. The parts that they run are counted here. A part
# that fails ends its shell, and when the others are done, this one.
# shellcheck disable=SC2030,SC2031 # in their own shells they are counted from 0 on, and added here
side_by_side() {
  local command=$1 word counts shells=() passed failed skipped failed_before=$parts_failed
  counts=$(mktemp -d)
  shift
  # With groups of their own, or they and all that they start would ignore control-C.
  set -m
  for word in "$@"; do
    (
      set +m
      trap 'status=$?
        ((status == 0 || parts_failed)) || parts_failed=1
        echo "$parts_passed $parts_failed $parts_skipped" >"$counts/$word"' EXIT
      trap interrupted INT TERM
      parts_passed=0 parts_failed=0 parts_skipped=0
      "$command" "$word"
    ) &
    shells+=($!)
  done
  set +m
  trap 'kill -TERM "${shells[@]}" 2>/dev/null; exit 130' INT TERM
  for word in "${shells[@]}"; do wait "$word" || true; done
  trap interrupted INT TERM
  for word in "$@"; do
    read -r passed failed skipped <"$counts/$word"
    ((parts_passed += passed, parts_failed += failed, parts_skipped += skipped)) || true
  done
  rm -r "$counts"
  [ -n "${KEEP_GOING:-}" ] || ((parts_failed == failed_before)) || exit 1
}

skip_part() { # skip_part NAME REASON
  ((parts_skipped += 1))
  printf 'skipped %-34s           %s\n' "$1" "$2"
}

seconds_since() {
  awk -v ns="$(($(date +%s%N) - $1))" 'BEGIN { printf "%.1f s", ns / 1e9 }'
}

# How many tests the runners in a log say have passed: cargo test, pytest, node --test, and the
# plain line "N passed, N failed" of our own.
tests_counted() {
  awk '
    /^test result: ok\. [0-9]+ passed/ { n += $4; next }
    /^=*[ ]*([0-9]+ [a-z]+, )*[0-9]+ passed.* in [0-9.]+s/ {
      match($0, /[0-9]+ passed/)
      n += substr($0, RSTART) + 0
      next
    }
    /^[0-9]+ passed, [0-9]+ failed/ { n += $1; next }
    /^[^ ]+ pass [0-9]+$/ { n += $NF }
    END { print n + 0 }' "$1"
}
