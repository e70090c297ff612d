# Sourced by the scripts beside it: a virtual environment in .venv with the package built into it.
#   setup [EXTRA]     installs the package, with what an extra needs, unless it is there already

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
    # The wheel is built once for what the build reads; the extras are installed on top of it.
    local state
    state=$(find cpp python proto pyproject.toml CMakeLists.txt -type f \
        ! -name '*.pyc' ! -name '*.so' -print0 | sort -z | xargs -0 cat | sha256sum | cut -c1-16)
    if [ ! -d ".venv/wheel-$state" ]; then
        echo "building bookrag_fast (a minute or two) …" >&2
        rm -rf .venv/wheel-* .venv/wheel
        .venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir .venv/wheel .
        .venv/bin/python -m pip install --quiet --force-reinstall --no-deps .venv/wheel/*.whl
        .venv/bin/python -m pip install --quiet .venv/wheel/*.whl
        mv .venv/wheel ".venv/wheel-$state" # last: an interrupted set-up begins again
    fi
    if [ -n "$extra" ] && [ ! -e ".venv/wheel-$state/has-$extra" ]; then
        echo "installing what the extra '$extra' needs …" >&2
        .venv/bin/python -m pip install --quiet "$(echo ".venv/wheel-$state"/*.whl)[$extra]"
        touch ".venv/wheel-$state/has-$extra"
    fi
}
