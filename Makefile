# Every target sets up what it needs: on a fresh machine `make test` or `make reproduce-table1` is the first command.
PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python

# Copies of the raw files that lie beside the checkout are used first, where they are.
export CMIXUP_MIRROR ?= $(abspath $(wildcard ../shared/data))
export OMP_NUM_THREADS ?= 1
# glibc gives large blocks back after every step and takes them again: a tenth of the time of larger batches.
export MALLOC_TRIM_THRESHOLD_ ?= 536870912
export MALLOC_MMAP_THRESHOLD_ ?= 536870912
# Where it is set, every process compiles torch anew, which is half of its start.
unexport PYTHONDONTWRITEBYTECODE

SELECTION = "seeds=$(SEEDS)" "datasets=$(DATASETS)" "methods=$(METHODS)" "preset=$(PRESET)" "device=$(DEVICE)" \
    "out=$(OUT)" "rerun=$(RERUN)" "dry_run=$(DRY_RUN)"
MEASURED = "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" "results=$(RESULTS)"
VERIFIED = "count=$(or $(CELLS),12)" "seed=$(SEED)" "datasets=$(DATASETS)" "experiments=$(EXPERIMENTS)" "models=$(MODELS)"
INSTALL  = $(PY) -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt
TESTS    = $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# No target of `reproduce-` or `bench-` is phony: make looks for no pattern rule of a phony one.
.PHONY: $(shell grep -hoE '^[a-z0-9-]+:' $(MAKEFILE_LIST) | grep -vE '^(reproduce|bench)-' | tr -d :)

help: ## Show this
	@sed -nE 's/^##@ (.*)/\n\1/p; s/^([a-z0-9%-]+)[: ].* ## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 30
	@echo; echo '  make reproduce-table1 SEEDS=2 DATASETS=no2 METHODS=erm PRESET=paper OUT=folder'

##@ Start

setup: $(VENV)/.dev ## Make .venv (every target does it by itself)

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (about a minute)" >&2
	$(PYTHON) -m venv --without-pip $(VENV)  # with the pip that is pinned: it resolves in half the time
	$(PYTHON) -m pip --python $(PY) install -qq --no-compile -c constraints.txt pip || $(PYTHON) -m venv $(VENV)
	$(INSTALL) torch numpy setuptools
	$(PY) -c 'import torch' & $(INSTALL) --no-build-isolation -e '.[repro]'  # Python compiles torch meanwhile
	@touch $@

$(VENV)/.dev: $(VENV)/.ready
	$(PY) -c 'import sklearn.utils.estimator_checks, cmixup.networks.vision as v; v.import_torchvision()' & $(INSTALL) --no-build-isolation -e '.[dev]'  # as above
	@touch $@

data: $(VENV)/.ready ## Fetch raw files and check their checksums
	$(PY) -m scripts.data fetch "datasets=$(DATASETS)"

test: $(VENV)/.dev ## Run the tests (2 minutes, no network, no GPU)
	$(TESTS)

docs: $(VENV)/.ready ## Build all pages as a site in outputs/site
	@$(PY) -c 'import furo, latex2mathml, myst_parser, sphinx_copybutton' 2>/dev/null || $(INSTALL) -e '.[docs]'
	$(PY) -m sphinx -q -W --keep-going -b html -c docs . outputs/site

##@ Reproduce the paper

reproduce-%: $(VENV)/.ready ## table1 ... table5, figure-bandwidth ... (docs/)
	$(PY) -m scripts.reproduce $(subst -,_,$*) $(SELECTION)

reproduce-table2: $(VENV)/.ready ## Table 2: tasks, 8 minutes a method
	$(PY) -m scripts.reproduce table2 $(SELECTION)

reproduce-table2-paired: reproduce-table2 ## Table 2, compared on the same test tasks
	$(PY) -m scripts.analysis task_errors "preset=$(PRESET)" "out=$(OUT)" "results=$(RESULTS)"

reproduce-table-spurious: $(VENV)/.ready ## RCF-MNIST's ERM at three ratios (GPU)
	$(MAKE) reproduce-table3 "SEEDS=$(or $(SEEDS),3)" DATASETS=rcf_mnist METHODS=erm
	$(PY) -m scripts.train -m dataset=rcf_mnist method=erm experiment.name=table_spurious dataset.ratio=0.5,0.95 \
	    logger=none "seeds='$(or $(SEEDS),3)'" preset=$(or $(PRESET),paper) device=$(or $(DEVICE),auto) \
	    $(if $(OUT),"out=$(OUT)")
	$(PY) -m scripts.analysis spurious $(MEASURED)

reproduce-theory: $(VENV)/.ready ## Theorems 1 to 3, simulated (8 minutes)
	$(PY) -m scripts.analysis theory "seeds=$(SEEDS)" "results=$(RESULTS)"

reproduce-figure-invariance: $(VENV)/.ready ## Learned invariance
	$(MAKE) reproduce-table3 "DATASETS=$(if $(DATASETS),$(DATASETS),crime,skillcraft)"
	$(PY) -m scripts.analysis invariance $(MEASURED) "datasets=$(DATASETS)"

reproduce-figure-pairs reproduce-figure-rcf-mnist: $(VENV)/.ready ## Mixing partners; RCF-MNIST
	$(PY) -m scripts.analysis pictures "results=$(RESULTS)"

reproduce-label-scale: $(VENV)/.ready ## Label scale x epochs x rate x method
	$(PY) -m scripts.reproduce ladder $(SELECTION)

reproduce-bandwidth-check: $(VENV)/.ready ## What the paper's bandwidths do
	$(PY) -m scripts.bandwidth check=1

reproduce-all: $(VENV)/.ready ## Train what is missing, then all [DRY_RUN=1]
	$(PY) -m scripts.reproduce all "seeds=$(SEEDS)" "device=$(DEVICE)" "out=$(OUT)" "dry_run=$(DRY_RUN)"

##@ Check and publish results

verify-metrics: $(VENV)/.ready ## Compute every score from its predictions
	$(PY) -m scripts.verify scores "results=$(RESULTS)"

verify-results: $(VENV)/.ready ## Train published cells again [CELLS=12 MODELS=]
	$(PY) -m scripts.verify cells $(VERIFIED)

verify-pages: $(VENV)/.ready ## Compare tables and pages with the records
	$(PY) -m scripts.render check=1

verify: verify-metrics verify-pages verify-results ## These three in turn

publish: $(VENV)/.ready ## Copy finished runs into results/ and render
	$(PY) -m scripts.publish "out=$(OUT)"

render: $(VENV)/.ready ## Render tables, figures and pages from records
	$(PY) -m scripts.render

##@ Study and benchmarks

tune: $(VENV)/.ready ## Tune methods, up to 16 trials each [JOBS=2]
	$(PY) -m scripts.tune "dataset=$(DATASETS)" "method=$(METHODS)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" "rerun=$(RERUN)" "jobs=$(JOBS)"

bench-when: $(VENV)/.ready ## The study of 30 tables (hours) [RULES= TABLES=]
	$(INSTALL) -e '.[tables]'
	$(PY) -m scripts.study train "rules=$(RULES)" "tables=$(TABLES)" "jobs=$(JOBS)"

bench-estimators: $(VENV)/.ready ## Estimators on 30 tables (an hour) [SHORT=1]
	$(INSTALL) -e '.[tables]'
	$(PY) -m scripts.bench estimators "short=$(SHORT)"

bench-train bench-sampling: bench-%: $(VENV)/.ready ## The speed of training, of sampling
	$(PY) -m scripts.bench $*

##@ Develop

check: lint types test ## lint, types and test

lint: $(VENV)/.dev ## Check style
	$(PY) -m ruff check . && $(PY) -m ruff format --check .

types: $(VENV)/.dev ## Check types
	$(PY) -m mypy

test-all: $(VENV)/.dev ## Every test, slow ones and those on real data
	$(TESTS) -m 'not gpu' --timeout 1800

test-data: $(VENV)/.dev ## The tests that read raw files
	$(TESTS) -m 'data and not slow and not gpu' --timeout 600

reliability: $(VENV)/.dev ## Kill, race, fill the disk: for real
	$(PY) -m pytest -n 2 -m slow --timeout 1800 tests/reliability

release: $(VENV)/.ready ## Build wheel and sdist in outputs/dist
	$(INSTALL) -e '.[release]'
	$(PY) -m build --outdir outputs/dist && $(PY) -m twine check --strict outputs/dist/*

clean: ## Remove .venv and caches (not data, not outputs)
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist *.egg-info
