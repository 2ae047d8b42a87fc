# Packages of Debian 12, also for other processors, to be unpacked and not installed: dpkg of this
# machine is not told of them, and none of their scripts runs. Source it after lib.sh.
# shellcheck shell=bash

# debian_lists FOLDER ARCHITECTURE...: a state of apt's own in FOLDER, as if this were a fresh
# machine of the first of these architectures that knows the others, too. Sets `apt_words`, which
# apt-get and apt-cache want. Whoever is done with it removes FOLDER.
debian_lists() {
  local folder=$1 architecture suite mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
  have apt-get || fail "only Debian has the packages"
  shift
  rm -rf "$folder"
  mkdir -p "$folder/lists/partial" "$folder/cache/partial" "$folder/none"
  : >"$folder/status"
  apt_words=(-qq -y -o APT::Architecture="$1" -o Dir::State::status="$folder/status"
    -o Dir::State::lists="$folder/lists" -o Dir::State::extended_states="$folder/extended"
    -o Dir::Cache::archives="$folder/cache" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o APT::Install-Recommends=false
    -o Acquire::Languages=none)
  for architecture; do apt_words+=(-o APT::Architectures::="$architecture"); done
  # Bookworm alone is enough: the other suites may be half copied on a mirror.
  suite=$folder/bookworm.list
  # shellcheck disable=SC2016 # apt's own words
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Codename: bookworm' | head -n 1)
  printf 'deb [signed-by=%s] %s bookworm main\n' "$keys" \
    "${mirror:-http://deb.debian.org/debian}" >"$suite"
  apt_words+=(-o Dir::Etc::sourcelist="$suite" -o Dir::Etc::sourceparts="$folder/none")
  retry 3 apt-get "${apt_words[@]}" update >&2 || fail "apt-get update for $* failed"
}
