#!/bin/sh
# Build the image of this checkout with buildah, and print its ID: the digest of its configuration, which names every
# layer. `make image` calls it; docs/image.md tells more.
#
#   IMAGE              its name; localhost/vacancy:VERSION if left out
#   PYTHON_IMAGE       the base; the Dockerfile's if left out
#   SOURCE             the address of the source, for the label
#   SOURCE_DATE_EPOCH  the time of every file in it; the commit's if left out
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
revision=$(git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null || true)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

# Packages come from where this machine's pip gets them. The build sees that as secrets, which no layer, label or
# history keeps; folders of wheels stay out, since the build can't see them.
for pip in .venv/bin/pip pip3 pip; do
    "$pip" config list >"$work/pip.list" 2>/dev/null && break
done
keys='index-url\|extra-index-url\|trusted-host\|proxy\|cert\|timeout\|default-timeout'
{
    echo '[global]'
    # ":env:" comes first and wins, as it does for pip; "\n" parts several values of one key.
    sed -n "s/^\(:env:\|global\|install\)\.\($keys\)='\(.*\)'\$/\2 = \3/p" "$work/pip.list" |
        awk -F ' = ' '!seen[$1]++ { gsub(/\\n/, "\n    "); print }'
} >"$work/pip.conf"
authorities=$(sed -n 's/^cert = //p' "$work/pip.conf")
if [ -n "$authorities" ]; then
    set -- --secret "id=ca.crt,src=$authorities"
    sed -i 's|^cert = .*|cert = /run/secrets/ca.crt|' "$work/pip.conf"
fi

buildah bud --no-cache --identity-label=false --timestamp "$epoch" --secret "id=pip.conf,src=$work/pip.conf" "$@" \
    ${PYTHON_IMAGE:+--build-arg "PYTHON_IMAGE=$PYTHON_IMAGE"} \
    --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "SOURCE=${SOURCE:-}" \
    --iidfile "$work/id" --tag "${IMAGE:-localhost/vacancy:$version}" . >&2
printf '%s\n' "$(cat "$work/id")"
