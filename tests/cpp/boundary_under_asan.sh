#!/bin/sh
# The Python tests of the core with the module built under AddressSanitizer and UBSan: what the C++
# tests cannot see lies in the bindings. Shares the build of the C++ tests under the same
# sanitizers. Linux, gcc. Run from anywhere:
#   tests/cpp/boundary_under_asan.sh [python]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
build=$root/build/asan
package=$build/package

cd "$root"
cmake --preset asan -DBOOKRAG_PYTHON=ON \
    -Dpybind11_DIR="$("$python" -m pybind11 --cmakedir)" -DPython_EXECUTABLE="$(command -v "$python")"
cmake --build --preset asan --target _core -j 2

rm -rf "$package" && mkdir -p "$package"
cp -r "$root/python/bookrag_fast" "$package/"
rm -f "$package"/bookrag_fast/_core*.so
cp "$build"/_core*.so "$package/bookrag_fast/"

# The runtimes must be loaded before Python; its own leaks are not ours to report (the leak test
# counts memory, which the sanitizer's quarantine would spoil).
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $(gcc -print-file-name=libstdc++.so)"
export LD_PRELOAD
ASAN_OPTIONS=detect_leaks=0 BOOKRAG_ASAN_PACKAGE=$package exec "$python" - "$root" <<'PYTHON'
import glob
import os
import sys

root, package = sys.argv[1], os.environ["BOOKRAG_ASAN_PACKAGE"]
# An editable install finds its own module first; not this time.
sys.meta_path = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, package)
import bookrag_fast._core

assert bookrag_fast._core.__file__.startswith(package), bookrag_fast._core.__file__
import pytest

files = sorted(glob.glob(f"{root}/tests/test_core_*.py"))
# Those of other processes import the module as it is installed; the sample book needs conftest.
skipped = "not leaks and not instruction_set and not interpreters and not sample_book"
arguments = ["-q", "--noconftest", "-p", "no:cacheprovider", "-k", skipped, "--rootdir", root]
sys.exit(pytest.main(arguments + files))
PYTHON
