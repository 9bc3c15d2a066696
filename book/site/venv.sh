#!/bin/sh
# Makes .venv and installs requirements.txt into it. Called by `make`; safe to interrupt and repeat.
# PYTHON=/path/to/python chooses the interpreter; otherwise the newest of python3.14 ... python3 that works.
set -eu
cd "$(dirname "$0")/../.."

runs() { command -v "$1" >/dev/null 2>&1 && "$1" -c "import sys; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; }

if ! { [ -x .venv/bin/python ] && runs .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    found=
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        if runs "$candidate"; then found=$candidate; break; fi
    done
    if [ -z "$found" ]; then
        echo "This book needs Python 3.11 or newer; ${PYTHON:-python3} is $(${PYTHON:-python3} --version 2>&1 || true)." >&2
        echo "Install one, then run: make book PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    echo "Creating .venv with $("$found" --version) ..."
    rm -rf .venv
    if ! "$found" -m venv .venv; then
        echo "Python could not create a virtual environment: its venv module is missing or incomplete." >&2
        echo "On Debian and Ubuntu: sudo apt-get install python3-venv. Then run make again." >&2
        rm -rf .venv
        exit 1
    fi
fi
echo "Installing requirements.txt into .venv (PyTorch is large: the first time takes minutes) ..."
.venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt
.venv/bin/python -m pip check --disable-pip-version-check
# Notebooks find `book` and `kernels` also where nothing sets PYTHONPATH, as in VS Code.
.venv/bin/python book/site/onpath.py
# nbgrader's menus are for course folders; in the book's own JupyterLab they would only be in the way.
mkdir -p .venv/etc/jupyter/labconfig
echo '{"disabledExtensions": {"@jupyter/nbgrader": true}}' > .venv/etc/jupyter/labconfig/page_config.json
