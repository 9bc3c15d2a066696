# The verbs. `make` alone lists them. Nothing but Python 3.11+, git and make is needed.
#   make book PORT=9000                 another first port
#   make book PYTHON=/path/to/python3   another interpreter for .venv

PORT ?= 8000
VENV := .venv/bin
PY := $(VENV)/python
# One environment for each version of requirements.txt: the stamp carries its checksum.
STAMP := .venv/installed-$(shell cat requirements.txt book/site/venv.sh | cksum | tr ' ' '-')

# The repository root goes first: `kernels` must be ours.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.PHONY: help book site test lab format outputs clean test-triton-matrix benchmark
.DEFAULT_GOAL := help

help:
	@echo "make book     build the book and serve it on this machine"
	@echo "make site     build the book into _build/html"
	@echo "make test     run every test"
	@echo "make lab      open the notebooks in JupyterLab"
	@echo "make format   format and lint the code, strip outputs from notebooks"
	@echo "make outputs  run the notebooks and store the outputs that the tests compare"
	@echo "make benchmark             time the pages in a browser"
	@echo "make test-triton-matrix    run the kernel tests on several Triton versions"
	@echo "make clean    remove what was built (the environment stays)"

$(STAMP):
	@PYTHON="$(PYTHON)" sh book/site/venv.sh
	@rm -f .venv/installed-*
	@touch $@

site: $(STAMP)
	@$(PY) book/site/vendor.py
	@# After a failed build every page is read again, so that no warning is shown only once.
	@$(VENV)/jupyter-book build . -n -W --keep-going || { rm -f _build/.doctrees/environment.pickle; exit 1; }

book: site
	@$(PY) book/site/serve.py --port $(PORT)

lab: $(STAMP)
	@$(VENV)/jupyter lab --notebook-dir=. --ServerApp.ip=127.0.0.1 --LabApp.default_url=/lab/tree/chapters \
		--LabApp.extension_manager=readonly --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate

test: $(STAMP)
	@sh tests/run.sh

test-triton-matrix: $(STAMP)
	@$(PY) tests/triton_matrix.py -n2

benchmark: site
	@$(PY) benchmarks/page.py

format: $(STAMP)
	@$(VENV)/ruff format .
	@$(VENV)/ruff check --fix .
	@$(PY) book/site/outputs.py chapters/*.ipynb

outputs: $(STAMP)
	@$(PY) book/site/outputs.py --run chapters/*.ipynb

clean:
	rm -rf _build .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
