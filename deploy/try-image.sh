#!/usr/bin/env bash
# Tries an image that build-image.sh made, where nothing can run containers: its files, mounted read-only, are the root of a
# server that runs as the image's user, with only /data and /tmp to write to. It must answer, store what it is given,
# refuse to write elsewhere, and end by itself on SIGTERM. Needs root, buildah, unshare and curl.
#   deploy/try-image.sh [NAME]     NAME: of the image, localhost/tidebase without
set -euo pipefail
name=${1:-localhost/tidebase}
scratch=$(mktemp -d)
container=$(buildah from --pull-never "$name")
server=""
clean_up() {
  local code=$?
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  buildah rm "$container" >/dev/null 2>&1 || true
  rm -rf -- "$scratch"
  exit "$code"
}
trap clean_up EXIT

fail() { echo "image: $*" >&2; tail -n 20 "$scratch/log" >&2 2>/dev/null || true; exit 1; }
inspect() { buildah inspect --type image --format "$1" "$name"; }

user=$(inspect '{{.OCIv1.Config.User}}')
[[ "$user" =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || fail "runs as '$user', not as a user by number that is not root"
root=$(buildah mount "$container")
mkdir "$scratch/data"
chown "$user" "$scratch/data"

# In a mount namespace of its own: nothing of it is left when it ends.
export root scratch user
setsid unshare --mount --propagation private bash -euc '
  mount --bind "$root" "$root"
  mount --bind "$scratch/data" "$root/data"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -o remount,ro,bind "$root"
  exec chroot --userspec="$user" "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin NODE_ENV=production \
    TIDEBASE_HOST=127.0.0.1 TIDEBASE_PORT=0 TIDEBASE_DATA_DIR=/data sh -c "
      touch /app/written 2>/dev/null && echo the root can be written to && exit 1
      cd /app && exec node dist/src/main.js serve"
' >"$scratch/log" 2>&1 &
server=$!

url=""
for _ in $(seq 300); do
  url=$(sed -n 's/^.*tidebase listening on \(http:[^ "]*\).*$/\1/p' "$scratch/log" | head -n 1)
  [ -z "$url" ] || break
  kill -0 "$server" 2>/dev/null || fail "the server ended at its start"
  sleep 0.2
done
[ -n "$url" ] || fail "the server did not listen within a minute"

engine=$(sed -n 's/^.*"engine":"\([^"]*\)".*$/\1/p' "$scratch/log" | head -n 1)
[ "$(stat -c %u:%g "/proc/$server")" = "$user" ] || fail "the process does not run as $user"
curl -fsS "$url/healthz" | grep -q ok || fail "/healthz"
key=$(curl -fsS "$url/v1/signup" -d '{"email":"image@example.com","name":"Image","password":"a long enough password"}' \
  | sed -n 's/.*"key":"\([^"]*\)".*/\1/p')
[ -n "$key" ] || fail "signing up answered no key"
curl -fsS "$url/v1/namespaces/notes/docs" -H "X-API-Key: $key" -d '{"docs":[{"id":"a","text":"low water in the harbour"}]}' >/dev/null
curl -fsS "$url/v1/namespaces/notes/search?q=harbour" -H "X-API-Key: $key" | grep -q '"id":"a"' || fail "the search found nothing"

kill -TERM "$server"
code=0
wait "$server" || code=$?
server=""
[ "$code" = 0 ] || fail "ended with $code on SIGTERM"
echo "image: $name runs as $user on a read-only root, answers by ${engine:-an unknown engine}, and ends on SIGTERM"
