#!/usr/bin/env bash
# Packs the small files of the plan's runs so far: cells, manifests, events, reports, logs; in a second archive the
# scrapes at the end of each level's first cell. Left out: the requests' own records.
# Usage: tools/h200/pack.sh RUNS_FOLDER OUT_FOLDER
set -uo pipefail
out=$2; cd "$1" || exit 1
find . -type f -size -5M ! -path '*/scrapes/*' ! -name requests.jsonl ! -name lock ! -name '*.gz' -print0 |
    tar czf "$out/small.tar.gz" --null -T -
find . -type f -path '*/scrapes/*' -name '*-r0-s0-idle-after.txt.gz' -print0 | tar cf "$out/scrapes.tar" --null -T -
ls -l "$out"
