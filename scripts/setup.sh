# Sourced by the scripts beside it: a virtual environment in .venv with the package built into it.
#   setup [EXTRA]     installs ".[EXTRA]" unless this very source is installed already

setup() {
    local extra=${1:-}
    local python=${PYTHON:-python3}
    if [ ! -x .venv/bin/python ]; then
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
            echo "bookrag_fast needs Python 3.10 or newer; name one with PYTHON=python3.11 $0" >&2
            exit 2
        }
        "$python" -m venv .venv || {
            echo "no virtual environment: on Debian, apt-get install python3-venv python3-dev g++" >&2
            exit 2
        }
        .venv/bin/python -m pip install --quiet --upgrade pip
    fi
    # What the build reads, by content: an unchanged tree is not built twice.
    local state
    state=$(find cpp python proto pyproject.toml CMakeLists.txt -type f \
        ! -name '*.pyc' ! -name '*.so' -print0 | sort -z | xargs -0 cat | sha256sum)
    if [ "$(cat ".venv/installed-$extra" 2>/dev/null)" != "$state" ]; then
        echo "building bookrag_fast${extra:+ with the $extra extra} (a minute or two) …" >&2
        .venv/bin/python -m pip install --quiet ".${extra:+[$extra]}"
        rm -f .venv/installed-*
        echo "$state" > ".venv/installed-$extra"
    fi
}
