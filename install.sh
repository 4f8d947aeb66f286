#!/bin/sh
# Installs ioscape: the program, its manual pages and completions. The binary is static and needs no other file.
#
#   install.sh [--version V] [--prefix DIR] [--from DIR-OR-URL] [--mpi]
#
# --version  what to install [default: the latest release]
# --prefix   where to [default: /usr/local for root, ~/.local for everybody else]
# --from     where the files of a release lie: a directory (as `cargo xtask dist` makes it), or an address
# --mpi      the binary for glibc 2.17 and later, which can run over many hosts; the static one cannot load MPI
# Checksums are checked before anything is installed. To remove it: rm the files that it names.
set -eu

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "install.sh: $*"
    exit 1
}

version=latest
from=
build=
prefix=/usr/local
[ "$(id -u)" = 0 ] || prefix="$HOME/.local"
while [ $# -gt 0 ]; do
    case $1 in
    --version | --prefix | --from) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    esac
    case $1 in
    --version) version=$2 && shift 2 ;;
    --prefix) prefix=$2 && shift 2 ;;
    --from) from=$2 && shift 2 ;;
    --mpi) build=-glibc2.17 && shift ;;
    *) fail "$1: unknown; there are --version, --prefix, --from, --mpi" ;;
    esac
done

[ "$(uname -s)" = Linux ] || fail "ioscape runs on Linux; this is $(uname -s)"
case $(uname -m) in
x86_64 | amd64) arch=x86_64 ;;
aarch64 | arm64) arch=aarch64 ;;
*) fail "there are binaries for x86_64 and aarch64; build from source on $(uname -m): cargo install ioscape" ;;
esac

releases=https://github.com/ioscape/ioscape/releases
if [ -z "$from" ]; then
    case $version in
    latest) from=$releases/latest/download ;;
    *) from=$releases/download/v$version ;;
    esac
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# One file of the release.
get() {
    case $from in
    http://* | https://*)
        if command -v curl >/dev/null; then
            curl -fsSL --retry 3 -o "$work/$1" "$from/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$work/$1" "$from/$1"
        else
            fail "curl or wget is needed"
        fi
        ;;
    *) cp "${from#file://}/$1" "$work/$1" ;;
    esac || fail "cannot get $from/$1"
}

get SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]*  \(ioscape-.*-$arch$build\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS" | head -n 1)
[ -n "$archive" ] || fail "this release has no archive for $arch$build"
get "$archive"
grep "  $archive\$" "$work/SHA256SUMS" >"$work/sum"
(cd "$work" && sha256sum -c sum >/dev/null 2>&1) || fail "$archive is not what was released: its checksum differs"

tar -xzf "$work/$archive" -C "$work"
tree=$work/${archive%.tar.gz}/usr
mkdir -p "$prefix/bin" "$prefix/share" || fail "cannot write $prefix; name another --prefix"
cp "$tree/bin/ioscape" "$prefix/bin/.ioscape.new"
if ! "$prefix/bin/.ioscape.new" --version >/dev/null; then
    rm "$prefix/bin/.ioscape.new"
    fail "$archive does not run on this system; nothing was replaced"
fi
mv "$prefix/bin/.ioscape.new" "$prefix/bin/ioscape"
cp -R "$tree/share/." "$prefix/share/"
say "$("$prefix/bin/ioscape" --version) in $prefix/bin"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) say "put $prefix/bin into your PATH" ;;
esac
