# Each target installs what it runs, and nothing else, into $(VENV).
#   PYTHON       the interpreter, 3.11 or newer
#   VENV         the environment
#   CONSTRAINTS  the versions; /dev/null for the newest of all
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN := $(VENV)/bin
AIRFLOW := .venv-airflow
S3 := .venv-s3
# Modules are compiled when they are first imported: most never are.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PIP := $(BIN)/python $(INSTALL) -c $(CONSTRAINTS)
# One BLAS thread: Spark runs one task per core, and the parallel test run one process per core.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadgroup --no-loadscope-reorder --durations=15 --durations-min=10

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# No target is a file, but for environments and the quickstart's job.
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

# Environments. Each file says that its part is installed.
java:
	@scripts/prerequisites.sh java

$(VENV)/.spark: pyproject.toml $(CONSTRAINTS)
	@PYTHON=$(PYTHON) scripts/prerequisites.sh python
	@echo "wordveil: installing into $(VENV) (a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[spark]'
	@touch $@

# Tests of other extras are skipped where these are not installed, and the reason is printed.
$(VENV)/.fast: $(VENV)/.spark
	@echo "wordveil: installing what the tests without Java need into $(VENV) (a minute, once)"
	@$(PIP) -e '.[spark,connect,verify,languages,evaluation,dev]'
	@touch $@

# Annoy has no wheels: without a compiler, its tests are left out.
$(VENV)/.tests: $(VENV)/.fast
	@PYTHON=$(PYTHON) scripts/prerequisites.sh compiler
	@echo "wordveil: installing what all tests need into $(VENV) (a few minutes, once)"
	@$(PIP) -e '.[spark,connect,verify,languages,chinese,japanese,evaluation,er-ae,dev,docs]'
	@$(PIP) annoy || echo "wordveil: Annoy could not be compiled (it takes g++ and Python.h); its tests are left out"
	@touch $@

# Two processes that fetch jars for the first time at once get in each other's way.
$(VENV)/.delta: $(VENV)/.spark | java
	@$(BIN)/python scripts/delta_jars.py
	@touch $@

$(VENV)/.%: $(VENV)/.spark
	@$(PIP) -e '.[spark,$*]'
	@touch $@

# The laboratory needs all that the tests need.
$(VENV)/.research: $(VENV)/.tests research/pyproject.toml
	@echo "wordveil: installing the laboratory into $(VENV) (a minute, once)"
	@$(PIP) -e . -e 'research[experiments]'
	@touch $@

# Airflow brings its own PySpark and hundreds of packages, so it has a separate environment.
$(AIRFLOW)/.installed: constraints-airflow.txt
	@PYTHON=$(PYTHON) scripts/prerequisites.sh python
	@echo "wordveil: installing Airflow into $(AIRFLOW) (a minute, once)"
	@$(PYTHON) -m venv $(AIRFLOW)
	@$(AIRFLOW)/bin/python $(INSTALL) -c constraints-airflow.txt \
		apache-airflow apache-airflow-providers-apache-spark apache-airflow-providers-openlineage
	@touch $@

# A server of S3, for the tests, and S3A's jars.
$(S3)/.installed: constraints-s3.txt
	@PYTHON=$(PYTHON) scripts/prerequisites.sh python
	@echo "wordveil: installing the S3 server of the tests into $(S3) (a minute, once)"
	@$(PYTHON) -m venv $(S3)
	@$(S3)/bin/python $(INSTALL) -c constraints-s3.txt 'moto[s3]' flask flask-cors
	@touch $@

quickstart: java $(VENV)/.spark  ## sanitise 300 news articles with local Spark, show what came out, and draw counts by subject as a page
	@$(BIN)/wordveil quickstart

er-ae-demo: java $(VENV)/.er-ae  ## train a small generator (ten minutes, once), let it write news sentences again with local Spark and show what came out
	@$(BIN)/python examples/er_ae_demo.py

er-ae-full: $(VENV)/.er-ae  ## train a generator of ER-AE's size on public sentences, on an NVIDIA GPU where there is one; hours on two cores
	@if command -v nvidia-smi >/dev/null; then $(PIP) -e '.[er-ae-cuda]'; fi
	@$(BIN)/wordveil train --config conf/generators/full.yaml

dev: hooks  ## make all that a contributor needs: the environment of test-fast, and the hooks of git
	@echo "wordveil: activate $(VENV), or run: make test ROOM=text"

# The type checker takes a minute on one core. Tests run beside it.
test-fast: $(VENV)/.fast  ## formatter, linter, types, and the tests without Java; five minutes on two cores
	@$(MAKE) --no-print-directory -j2 lint test-without-java

# A test that starts Java fails here.
FAST := JAVA_HOME=/nonexistent $(PYTEST) tests/unit tests/contracts tests/statistical
test-without-java: $(VENV)/.fast
	@$(FAST)

test-processors: $(VENV)/.tests  ## long: the tests without Java, as on three kinds of processors
	@MAKE="$(MAKE)" scripts/test_processors.sh

test-pythons:  ## long: the README's two commands from nothing, with each Python that this machine has; a quarter of an hour each
	@scripts/fresh.sh

test-spark-versions: $(VENV)/.tests  ## long: the tests on Spark, with Spark 3.5 and 4.0
	@VENV=$(VENV) scripts/test_spark_versions.sh

# Without the linters: other versions have other rules.
test-oldest:  ## the quickstart and all tests without Java, with the oldest dependencies that pyproject.toml allows
	@$(MAKE) --no-print-directory VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt quickstart all-extras test-without-java

test-newest:  ## the same with the newest of all dependencies
	@rm -rf .venv-newest
	@$(MAKE) --no-print-directory VENV=.venv-newest CONSTRAINTS=/dev/null quickstart all-extras test-without-java

all-extras: $(VENV)/.tests

constraints-oldest:  ## write constraints-oldest.txt again, after a change of dependencies
	@PYTHON=$(PYTHON) scripts/oldest.sh

coverage: $(VENV)/.tests  ## the share of the package's lines that the tests without Java run; compiled loops are not counted
	@$(FAST) --cov

check-import:  ## install the package without Spark into an empty environment, and run what needs none
	@rm -rf build/alone
	@$(PYTHON) -m venv build/alone
	@build/alone/bin/python $(INSTALL) -c $(CONSTRAINTS) .
	@build/alone/bin/python scripts/check_import.py
	@build/alone/bin/python $(INSTALL) -c $(CONSTRAINTS) '.[verify]'
	@build/alone/bin/python scripts/check_import.py verify

test-all:
	@$(PYTEST)

# One room alone needs neither Java nor the linters, and leaves out the sweeps, which take most of the time. One file
# runs whole.
ifdef ROOM
test: $(VENV)/.fast
	@$(PYTEST) $(if $(filter %.py,$(ROOM)),,-m "not long and not sweep") tests/unit/$(ROOM)
else
test: java s3 $(VENV)/.delta $(VENV)/.tests $(AIRFLOW)/.installed  ## all of that, and the tests on Spark, Delta, S3 and Airflow; 17 minutes on two cores
	@$(MAKE) --no-print-directory -j2 lint test-all
endif

test-long: $(VENV)/.tests $(VENV)/.delta $(AIRFLOW)/.installed  ## what takes long by nature: all targets below that are marked long, but what this machine lacks the means for; over four hours
	@MAKE="$(MAKE)" scripts/test_long.sh

test-long-suite: s3 $(VENV)/.tests $(VENV)/.delta $(AIRFLOW)/.installed  ## long: the tests marked long, among them 10,000 random tables and the demo of Airflow
	@$(PYTEST) -m long

test-research: s3 $(VENV)/.research  ## long: the tests of the laboratory; those of published corpora need data sets in ../shared/data
	@$(PYTEST) -c research/pyproject.toml research/tests

lint: $(VENV)/.fast  ## formatter, linter, spelling, large files, types
	@VENV=$(VENV) $(BIN)/pre-commit run --all-files
	@$(BIN)/mypy --no-error-summary

hooks: $(VENV)/.fast  ## let git run the linters before each commit
	@$(BIN)/pre-commit install

format: $(VENV)/.fast  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

airflow: $(AIRFLOW)/.installed  ## install Airflow for the DAGs, into .venv-airflow

# The tests on S3 and Iceberg are left out, with the reason, where these cannot be had.
s3: $(VENV)/.delta  ## install what the tests on S3 and Iceberg need: a server into .venv-s3, S3A's jars and Iceberg's
	@$(BIN)/python scripts/delta_jars.py --s3
	@$(BIN)/python scripts/delta_jars.py --iceberg
	@$(MAKE) --no-print-directory $(S3)/.installed || echo "wordveil: there is no S3 server; its tests are left out"

log-store: $(VENV)/.delta  ## compile Delta's log store for S3 into the jar that comes with the package; needs javac
	$(BIN)/python scripts/log_store.py

airflow-demo: $(VENV)/.tests $(VENV)/.delta $(AIRFLOW)/.installed  ## run both DAGs in a real Airflow over the quickstart's articles; 24 minutes on two cores
	@$(BIN)/python scripts/airflow_demo.py

chaos: s3 $(VENV)/.tests $(VENV)/.delta  ## long: kill jobs 250 times at random moments, 50 of them on S3, and 200 batches of a stream, and compare what they left with undisturbed runs; an hour and a half
	cd tests && ../$(BIN)/python -m support.kill_campaign

standalone: $(VENV)/.tests $(VENV)/.delta quickstart/job.yaml  ## long: docs/deploy.md on a standalone cluster of two workers; ten minutes
	scripts/standalone.sh

yarn: $(VENV)/.tests $(VENV)/.delta quickstart/job.yaml  ## long: docs/deploy.md on YARN and HDFS; ten minutes, and a download once
	scripts/yarn.sh

bench-billion: $(VENV)/.research $(VENV)/.delta  ## long: sanitise 1,000,000,000 tokens and write the figures down; ten minutes, 10 GB of disk
	$(BIN)/python research/benchmarks/tables.py --billion

# The articles and the key that standalone and yarn work with.
quickstart/job.yaml:
	@$(MAKE) --no-print-directory quickstart

bench: $(VENV)/.research  ## measure Laplace in Spark against the bare matrix product; research/docs/benchmarks.md names the other benchmarks
	$(BIN)/python research/benchmarks/laplace_exact.py

bench-meaning: $(VENV)/.research  ## measure what each mechanism leaves of meaning; an hour, and the data directory
	$(BIN)/python research/benchmarks/meaning.py
	$(BIN)/python research/benchmarks/meaning.py --draw

bench-search: $(VENV)/.research  ## measure Annoy against the exact search: speed, recall, meaning
	$(BIN)/python research/benchmarks/annoy_recall.py

glove: $(VENV)/.spark  ## make the embedding glove that comes with the package; GLOVE=glove.6B.100d.txt
	$(BIN)/python scripts/glove.py $(GLOVE)

poincare: $(VENV)/.research  ## train the Poincare embedding that comes with the package, and draw its disk
	$(BIN)/python scripts/poincare.py

bigrams: $(VENV)/.spark  ## count the bigram model that comes with the package; BOOKS=a directory or tar of the texts in lib/wordveil/data/bigrams/books.tsv, UTF-8
	$(BIN)/python scripts/bigrams.py $(BOOKS)

sentences: $(VENV)/.spark  ## make the public sentences that come with the package; WORDNET=a directory or tar of WordNet 3.0's dictionary
	$(BIN)/python scripts/sentences.py $(WORDNET)

lists: $(VENV)/.lists  ## make the public lists that come with the package; WORDNET=WordNet 3.0's dictionary, BOOKS=as for bigrams
	$(BIN)/python scripts/lists.py $(WORDNET) $(BOOKS)

word-lists: $(VENV)/.spark  ## make the lists of ordinary and of sensitive words that come with the package; WORDNET=WordNet 3.0's dictionary
	$(BIN)/python scripts/word_lists.py $(WORDNET)

release: $(VENV)/.release  ## build sdist and wheel into dist/, check them, install the wheel into an empty environment and run it
	@$(BIN)/python scripts/release.py

docs: $(VENV)/.docs  ## build the documentation as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "wordveil: open build/site/index.html; for its search run: $(BIN)/python -m http.server -d build/site"

settings: $(VENV)/.fast  ## write docs/settings.md from the models of the configuration
	$(BIN)/python scripts/settings.py

clean:  ## remove the environment and the files of the quickstart and of er-ae
	rm -rf $(VENV) .venv-oldest .venv-newest $(AIRFLOW) $(S3) quickstart er-ae-demo er-ae-full build
