#!/bin/sh
# Every test, in the order in which a failure is cheapest to find. Called by `make test`.
# All steps run even if one fails; the exit status is 0 only if all passed.
set -u
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=""

step() {
    name=$1; shift
    printf '\n=== %s\n' "$name"
    "$@" || failed="$failed\n  $name"
}

site() { $bin/python book/site/vendor.py --tests && ${MAKE:-make} --no-print-directory site && export SITE_IS_BUILT=1; }

step "lint" $bin/ruff check .
step "format" $bin/ruff format --check .
step "dependencies" $bin/python -m pip check
step "browser" $bin/python book/site/browser.py --install
step "sandbox" $bin/python labs/grading/install_bubblewrap.py
step "site" site
step "tests" $bin/python -m pytest -n 2 --dist worksteal -q -m "not quiet"
step "timing tests" $bin/python -m pytest -q -m quiet tests/kernels
step "notebooks" $bin/python -m pytest --nbval-lax --nbval-current-env -n 2 --dist loadscope -q -p no:cacheprovider chapters/*.ipynb
step "labs' masters" $bin/python -m pytest --nbval-lax --nbval-current-env -n 2 --dist loadscope -q -p no:cacheprovider labs/*/*.ipynb

if [ -n "$failed" ]; then
    printf "\nFailed:$failed\n"
    exit 1
fi
printf '\nAll tests passed.\n'
