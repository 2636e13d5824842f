#!/bin/sh
# Run the whole demo, and fail unless it finds as much as docs/start.md shows.
set -eu
cd "$(dirname "$0")/.."
shown=$(grep 'raised an alarm, .* false alarm(s)' docs/start.md)
printed=$(make demo)
echo "$printed"
echo "$printed" | grep -qF "$shown" || { echo "docs/start.md shows: $shown" >&2; exit 1; }
