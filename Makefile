# make quickstart and make test set up all they need in .venv. PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread: Spark runs one task per core, and the parallel test run one process per core.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: help quickstart er-ae-demo er-ae-full test test-long test-long-suite lint format airflow airflow-demo chaos standalone yarn \
	bench bench-meaning bench-search bench-billion poincare bigrams sentences lists docs settings clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.venv/installed: pyproject.toml constraints.txt scripts/prerequisites.sh scripts/delta_jars.py
	@PYTHON=$(PYTHON) scripts/prerequisites.sh
	@echo "wordveil: installing into .venv (a few minutes, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark,fast,languages,chinese,japanese,evaluation,er-ae,dev,docs]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt annoy || \
		echo "wordveil: Annoy could not be compiled (it takes g++ and Python.h); the approximate search and its tests are left out"
	@$(BIN)/python scripts/delta_jars.py
	@touch $@

# Airflow brings its own PySpark and hundreds of packages, so it has a separate environment.
.venv-airflow/installed: constraints-airflow.txt scripts/prerequisites.sh
	@PYTHON=$(PYTHON) scripts/prerequisites.sh
	@echo "wordveil: installing Airflow into .venv-airflow (a minute, once)"
	@$(PYTHON) -m venv .venv-airflow
	@.venv-airflow/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-airflow.txt apache-airflow \
		apache-airflow-providers-apache-spark apache-airflow-providers-openlineage
	@touch $@

quickstart: .venv/installed  ## sanitise 300 news articles with local Spark and show what came out
	@$(BIN)/python examples/quickstart.py

er-ae-demo: .venv/installed  ## train a small generator (ten minutes, once), let it write news sentences anew with local Spark and show what came out
	@$(BIN)/python examples/er_ae_demo.py

er-ae-full: .venv/installed  ## train a generator of ER-AE's size on public sentences, on an NVIDIA GPU where there is one; hours on two cores
	@if command -v nvidia-smi >/dev/null; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[er-ae-cuda]'; fi
	@$(BIN)/wordveil train --config conf/generators/full.yaml

test: .venv/installed .venv-airflow/installed  ## lint, types and all tests
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -q

test-long: .venv/installed .venv-airflow/installed  ## what takes long by nature: all targets below that are marked long, but what this machine lacks the means for; 90 minutes
	@MAKE="$(MAKE)" scripts/test_long.sh

test-long-suite: .venv/installed .venv-airflow/installed  ## long: the tests marked long, among them 10,000 random tables and the demo of Airflow
	@$(BIN)/python -m pytest -m long -n 2 --dist loadgroup -q

lint: .venv/installed  ## formatter, linter, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/installed  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

airflow: .venv-airflow/installed  ## install Airflow for the DAGs, into .venv-airflow

airflow-demo: .venv/installed .venv-airflow/installed  ## run both DAGs in a real Airflow over the quickstart's articles; minutes
	@$(BIN)/python scripts/airflow_demo.py

chaos: .venv/installed  ## long: kill the job 200 times at random moments and compare what it left with an undisturbed run; half an hour
	cd tests && ../$(BIN)/python chaos.py --kills 200

standalone: .venv/installed quickstart/wordveil.key  ## long: docs/deploy.md on a standalone cluster of two workers; ten minutes
	scripts/standalone.sh

yarn: .venv/installed quickstart/wordveil.key  ## long: docs/deploy.md on YARN and HDFS; ten minutes, and a download once
	scripts/yarn.sh

bench-billion: .venv/installed  ## long: sanitise 1,000,000,000 tokens and write the figures down; ten minutes, 10 GB of disk
	$(BIN)/python benchmarks/tables.py --billion

# The articles and the key that standalone and yarn work with.
quickstart/wordveil.key:
	@$(MAKE) --no-print-directory quickstart

bench: .venv/installed  ## measure Laplace in Spark against the bare matrix product; docs/benchmarks.md names the other benchmarks
	$(BIN)/python benchmarks/laplace_exact.py

bench-meaning: .venv/installed  ## measure what each mechanism leaves of meaning; an hour, and the data directory
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plots]'
	$(BIN)/python benchmarks/meaning.py
	$(BIN)/python benchmarks/meaning.py --draw

bench-search: .venv/installed  ## measure Annoy against the exact search: speed, recall, meaning
	$(BIN)/python benchmarks/annoy_recall.py

poincare: .venv/installed  ## train the Poincare embedding that comes with the package, and draw its disk
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plots]'
	$(BIN)/python scripts/poincare.py

bigrams: .venv/installed  ## count the bigram model that comes with the package; BOOKS=a directory or tar of the texts in lib/wordveil/data/bigrams/books.tsv, UTF-8
	$(BIN)/python scripts/bigrams.py $(BOOKS)

sentences: .venv/installed  ## make the public sentences that come with the package; WORDNET=a directory or tar of WordNet 3.0's dictionary
	$(BIN)/python scripts/sentences.py $(WORDNET)

lists: .venv/installed  ## make the public lists that come with the package; WORDNET=WordNet 3.0's dictionary, BOOKS=as for bigrams
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lists]'
	$(BIN)/python scripts/lists.py $(WORDNET) $(BOOKS)

docs: .venv/installed  ## build the documentation as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "wordveil: open build/site/index.html; for its search run: $(BIN)/python -m http.server -d build/site"

settings: .venv/installed  ## write docs/settings.md from the models of the configuration
	$(BIN)/python scripts/settings.py

clean:  ## remove the environment and the files of the quickstart and of er-ae
	rm -rf .venv .venv-airflow quickstart er-ae-demo er-ae-full build
