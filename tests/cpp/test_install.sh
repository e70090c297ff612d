#!/bin/sh
# Installs the C++ library into a fresh prefix, builds the example against it as a stranger would
# (nothing of this tree on its paths) and checks what the example prints. Run from anywhere.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$root" -B "$work/library" -G Ninja -DCMAKE_BUILD_TYPE=Release >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/library" --target bookrag_core >"$work/log" || { cat "$work/log"; exit 1; }
cmake --install "$work/library" --prefix "$work/prefix" --component cpp >"$work/log"
cp -r "$root/examples/cpp" "$work/example"
rm -rf "$work/library"

cmake -S "$work/example" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_BUILD_TYPE=Release >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/ranked_nodes" | tee "$work/output"

# The two nodes that nothing beats in both criteria, the better by the graph first.
[ "$(wc -l <"$work/output")" -eq 2 ]
sed -n 1p "$work/output" | grep -q '^1.1 The pump moves water .*1 Cooling'
sed -n 2p "$work/output" | grep -q '^2.1 A fuse protects the pump .*2 Electricity'
echo "installed library: passed"
