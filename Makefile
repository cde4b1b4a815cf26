# `make demo` shows the product, `make test` proves it, `make test-kafka` proves it on Apache Kafka. All make .venv when
# it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: demo test test-kafka lint clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "HYVE needs Python 3.11 to 3.13; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[embedded]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/hyve demo $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Of the unit tests as many at a time as there are processors; then two files at a time of what starts brokers and
# workers, which mostly wait.
test: lint
	$(BIN)/pytest -n auto tests/unit tests/fuzz $(ARGS)
	$(BIN)/pytest -n 2 --dist loadfile tests/integration $(ARGS)

# On Apache Kafka: by Docker, or by Java 17 and Maven, or HYVE_TEST_BOOTSTRAP=host:port; fails where there is none.
# The tests of TLS start a node of their own: they need Java 17, Maven and openssl, and are skipped where there is no Java.
test-kafka: $(VENV)/.test
	HYVE_TEST_BROKER=apache $(BIN)/pytest -n 2 --dist loadfile -m "kafka and not embedded" tests/integration $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
