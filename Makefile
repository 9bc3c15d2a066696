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

LAB ?= lab2-linear
GRADES ?= grades

.PHONY: help book site test lab format outputs messages clean test-triton-matrix benchmark
.PHONY: test-specialisations test-executed rehearse labs-release labs-check labs-grade labs-test labs-sandbox test-notebooks-clean
.DEFAULT_GOAL := help

help:
	@echo "make book     build the book and serve it on this machine"
	@echo "make site     build the book into _build/html"
	@echo "make test     run every test"
	@echo "make lab      open the notebooks in JupyterLab"
	@echo "make format   format and lint the code, strip outputs from notebooks"
	@echo "make outputs  run the notebooks and store the outputs that the tests compare [CHAPTER=02-linear-layers]"
	@echo "make messages              what code and pages say, for a second language"
	@echo "make benchmark             time the pages in a browser"
	@echo "make test-triton-matrix    run the kernel tests on several Triton versions"
	@echo "make test-specialisations  compile all that the sweeps launch, for every chip"
	@echo "make test-executed         run all that is compiled, for every chip, on this CPU"
	@echo "make rehearse              the whole measuring command on an imaginary card [CHIP=sm_90], and what reads its record"
	@echo "make labs-release          the labs' student and instructor copies, and a zip of both"
	@echo "make labs-check            nbgrader validates the masters, and that untouched copies fail"
	@echo "make labs-grade SUBMISSIONS=folder [LAB=lab2-linear] [GRADES=grades] [GRADE_OPTIONS=...]"
	@echo "make labs-test             grade forty made submissions of each lab"
	@echo "make test-notebooks-clean  run every chapter's download in a bare environment"
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
	@$(PY) tests/run.py

test-triton-matrix: $(STAMP)
	@$(PY) tests/triton_matrix.py -n2

test-specialisations: $(STAMP)
	@EVERY_CHIP=1 $(PY) -m pytest -q tests/kernels/test_compiled.py

test-executed: $(STAMP)
	@EVERY_CHIP=1 $(PY) -m pytest -q tests/kernels/executed

# Minutes of one core; the record lies in _build, and is no measurement.
CHIP ?= sm_90
rehearse: $(STAMP)
	@$(PY) -m kernels.measure --rehearse $(CHIP) --out _build/rehearsal.json
	@REHEARSAL=_build/rehearsal.json $(PY) -m pytest -q tests/kernels/test_rehearsed_run.py

benchmark: site
	@$(PY) benchmarks/page.py

labs-release: $(STAMP)
	@$(PY) -m labs.release $(RELEASE_OPTIONS)

labs-check: $(STAMP)
	@$(PY) -m labs.release --check

# The sandbox that submissions run in; a Debian package, installed where that is possible.
labs-sandbox: $(STAMP)
	@$(PY) labs/grading/install_bubblewrap.py

labs-grade: labs-sandbox
	@test -n "$(SUBMISSIONS)" || { echo "SUBMISSIONS is not set: make labs-grade SUBMISSIONS=folder-of-notebooks LAB=$(LAB)"; exit 2; }
	@$(PY) -m labs.grading "$(SUBMISSIONS)" --lab "$(LAB)" --out "$(GRADES)" $(GRADE_OPTIONS)

test-notebooks-clean: $(STAMP)
	@EVERY_CHAPTER=1 $(PY) -m pytest -q tests/book/test_self_contained.py

labs-test: labs-sandbox
	@FULL_CLASS=1 $(PY) -m pytest tests/labs -n 2 --dist worksteal -q

format: $(STAMP)
	@$(VENV)/ruff format .
	@$(VENV)/ruff check --fix .
	@$(PY) book/site/outputs.py chapters/*.ipynb labs/*/*.ipynb

# Templates to translate, in _build/locale; and the catalogs of book/locales made ready to be read.
messages: $(STAMP)
	@$(PY) -m book.messages extract
	@$(PY) -m book.messages compile

outputs: $(STAMP)
	@$(PY) book/site/outputs.py --run chapters/$(or $(CHAPTER),*).ipynb

clean:
	rm -rf _build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
