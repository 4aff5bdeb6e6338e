#!/usr/bin/env bash
# Builds the image without Docker and without a registry of images: on a base that mmdebstrap makes of Debian's packages and
# this machine's Node. Needs root, and Debian's packages buildah and mmdebstrap.
#   deploy/build-image.sh [NAME]     NAME: of the image, localhost/tidebase without
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:-localhost/tidebase}
base=$name-base
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# Node as it is here: the program, npm, and the headers that native modules are compiled against.
node=$(readlink -f "$(command -v node)")
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
prefix=$(dirname "$(dirname "$node")")
mmdebstrap --quiet --variant=minbase --include=ca-certificates,libstdc++6 \
  --customize-hook="mkdir -p \"\$1\"/usr/local/lib/node_modules \"\$1\"/usr/local/include" \
  --customize-hook="cp $node \"\$1\"/usr/local/bin/node" \
  --customize-hook="cp -rL $npm \"\$1\"/usr/local/lib/node_modules/npm" \
  --customize-hook="cp -rL $prefix/include/node \"\$1\"/usr/local/include/node" \
  --customize-hook="ln -s ../lib/node_modules/npm/bin/npm-cli.js \"\$1\"/usr/local/bin/npm" \
  bookworm "$scratch/base.tar"

container=$(buildah from scratch)
buildah add -q "$container" "$scratch/base.tar" / >/dev/null
buildah commit -q --rm "$container" "$base" >/dev/null

# What reaches npm's registry from here: settings and certificates, which stay out of the image.
secrets=()
[ -f "$HOME/.npmrc" ] && secrets+=(--secret "id=npmrc,src=$HOME/.npmrc")
ca=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
[ -f "$ca" ] && secrets+=(--secret "id=ca,src=$ca")
buildah bud --isolation chroot --ignorefile deploy/Dockerfile.dockerignore --build-arg "BASE=$base" "${secrets[@]}" \
  --format docker -f deploy/Dockerfile -t "$name" .
buildah images "$name"
