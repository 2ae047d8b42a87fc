# What the scripts know of the gateways' processors. Source it after lib.sh and call
# `gateway mipsel` or `gateway armv7`; then these are set:
#
#   target   the name that Rust has for it       triple   the one that the C tools have
#   debian   the one that Debian has             qemu     its emulator
#   machine  of the Node addon                   glibc    root of the cross compiler's libraries
#   link     words for every link step           gateway_folder  where cargo builds
#
# shellcheck shell=bash
# shellcheck disable=SC2034 # used by those who source this
gateways=(mipsel armv7)

gateway() {
  case ${1:-} in
    mipsel)
      target=mipsel-unknown-linux-gnu triple=mipsel-linux-gnu debian=mipsel
      qemu=qemu-mipsel-static machine=linux-mipsel-gnu
      # The linker pads for pages of 64 KiB, which no kernel of such a gateway has.
      link=-Wl,-z,max-page-size=4096
      ;;
    armv7)
      target=armv7-unknown-linux-gnueabihf triple=arm-linux-gnueabihf debian=armhf
      qemu=qemu-arm-static machine=linux-arm-gnueabihf
      link=
      ;;
    *) fail "which gateway? ${gateways[*]}" ;;
  esac
  glibc=/usr/$triple
  # One folder for all workspaces: they share one std.
  # shellcheck disable=SC2154 # lib.sh has root
  gateway_folder=$root/target/x-gateway-$1
  dist=$root/target/dist/$target     # what a user gets
  libraries=$root/target/dist-$target # of ci/build
  prefix=$root/target/gateway/$1/prefix
  sysroot=$root/target/sysroot/$1
}

# The compiler from Debian with the sources of std of its own version; cargo as it is found.
# RUSTC_BOOTSTRAP lets the stable compiler build std, as -Zbuild-std is for nightly.
need_gateway_rust() {
  need_rust
  need_debian_rust
  need_apt rust-web-src "gcc-$triple"
  export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTC_BOOTSTRAP=1
}

need_emulator() { need_apt qemu-user-static; }
