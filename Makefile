# Two commands for a newcomer: `make demo` shows trained attention, `make test` runs the tests.
#   make test ARGS="-k masks -x"      any argument of pytest passes through
#   make test-backends                layers and searches on TensorFlow, JAX and PyTorch

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

export TF_CPP_MIN_LOG_LEVEL ?= 3

BACKENDS ?= tensorflow jax torch
ON_BACKENDS := tests/layers tests/test_decoding_*.py tests/test_translator.py

# On JAX the tests compile most of the time: quickly, and kept for the next run.
JAX_COMPILES_QUICKLY := --xla_backend_optimization_level=0
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.jax_cache
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1

# Two tests that are neighbours need the same compiled functions: keep them together.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test test-backends lint clean

# The environment is made anew only when what it installs has changed.
$(VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install -qq --upgrade pip
	$(BIN)/python -m pip install -qq --editable ".[test]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/attention-zoo demo --out demo

test: $(VENV)/.installed
	$(PYTEST) $(ARGS)

$(VENV)/.backends: $(VENV)/.installed
	$(BIN)/python -m pip install -qq --editable ".[test,backends]"
	touch $@

test-backends: $(VENV)/.backends
	for backend in $(BACKENDS); do \
		echo "$$backend:"; export KERAS_BACKEND=$$backend; \
		[ $$backend = jax ] && export XLA_FLAGS=$(JAX_COMPILES_QUICKLY) || unset XLA_FLAGS; \
		$(PYTEST) $(ON_BACKENDS) $(ARGS) || exit 1; \
	done

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf $(VENV) .jax_cache build dist *.egg-info demo
