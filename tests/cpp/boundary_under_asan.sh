#!/bin/sh
# The Python tests of the core with the module built under AddressSanitizer and UBSan: what the C++
# tests cannot see lies in the bindings. Linux, gcc. Run from anywhere:
#   tests/cpp/boundary_under_asan.sh [python]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
build=$root/build/asan-python
package=$build/package

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBOOKRAG_WERROR=ON \
    -DBOOKRAG_SANITIZE=address,undefined -DBOOKRAG_PYTHON=ON \
    -Dpybind11_DIR="$("$python" -m pybind11 --cmakedir)" -DPython_EXECUTABLE="$(command -v "$python")"
cmake --build "$build"

rm -rf "$package" && mkdir -p "$package"
cp -r "$root/python/bookrag_fast" "$package/"
cp "$build"/_core*.so "$package/bookrag_fast/"

# The runtimes must be loaded before Python; its own leaks are not ours to report (the leak test
# counts memory, which the sanitizer's quarantine would spoil).
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $(gcc -print-file-name=libstdc++.so)"
export LD_PRELOAD
ASAN_OPTIONS=detect_leaks=0 BOOKRAG_ASAN_PACKAGE=$package exec "$python" - "$root" <<'EOF'
import os
import sys

root, package = sys.argv[1], os.environ["BOOKRAG_ASAN_PACKAGE"]
# An editable install finds its own module first; not this time.
sys.meta_path = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, package)
import bookrag_fast._core

assert bookrag_fast._core.__file__.startswith(package), bookrag_fast._core.__file__
import pytest

tests = ["boundary", "lifetime", "structures", "algorithms", "similarity"]
arguments = ["-q", "--noconftest", "-p", "no:cacheprovider", "-k", "not leaks", "--rootdir", root]
sys.exit(pytest.main(arguments + [f"{root}/tests/test_core_{t}.py" for t in tests]))
EOF
