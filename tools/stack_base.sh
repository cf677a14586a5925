#!/usr/bin/env bash
# Makes FOLDER/base.tar: a Debian with Python, which stands in for python:3-slim where no image can be pulled. Run as
# root; takes about a minute, once. The host's certificates and pip settings go in, so that pip works in a build as it
# does outside; the image is for tests on this machine alone.
set -euo pipefail
folder=${1:?usage: tools/stack_base.sh FOLDER}
[ -s "$folder/base.tar" ] && exit 0
[ "$(id -u)" = 0 ] || { echo "debootstrap needs root." >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 2; }
mkdir -p "$folder"
root=$(mktemp -d "$folder/base.XXXXXX")
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root" >"$folder/debootstrap.log" ||
    { tail -5 "$folder/debootstrap.log" >&2; exit 1; }
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$root$file"
done
tar -C "$root" -cf "$folder/base.tar.part" .
mv "$folder/base.tar.part" "$folder/base.tar"
