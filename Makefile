# Every target sets up what it needs in .venv/, once; PYTHON=... chooses the Python.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help pretrain test test-all test-peers lint format wheel clean

PYTEST_ARGS ?=
# The environment of the Python at hand; `$(call environment,EXTRAS)` makes it where it is missing.
environment = base=$$(scripts/find_python.sh any) && python=$$("$$base" scripts/environment.py $(1))
export INPUT OUTPUT ERRORS PYTHON

help:  ## list the targets
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

pretrain:  ## train a small ALBERT from text; INPUT='my/*.txt' takes your text, OUTPUT=folder the place
	@$(call environment,) && exec "$$python" -m scripts.pretrain --input="$$INPUT" --output="$$OUTPUT" --errors="$${ERRORS:-strict}"

test:  ## run the tests with the Python at hand; PYTEST_ARGS='tests/test_x.py -k name' picks some
	@scripts/test.sh any $(PYTEST_ARGS)

test-all:  ## run the tests on both stacks, as far as their Pythons are on this machine
	@scripts/test.sh all $(PYTEST_ARGS)

test-peers:  ## hold the model and its files against Hugging Face transformers on PyTorch (a large download)
	@$(call environment,test peers) && "$$python" -m pytest tests/peers $(PYTEST_ARGS)

lint:  ## check the format, the lint rules and the types
	@$(call environment,lint) && "$$python" -m ruff format --check . && "$$python" -m ruff check . && "$$python" -m mypy

format:  ## format the code and mend what the lint rules can mend
	@$(call environment,lint) && "$$python" -m ruff format . && "$$python" -m ruff check --fix .

wheel:  ## make dist/albert_tf-*.whl, for every Python and TensorFlow that setup.py lists
	@$(call environment,) && rm -rf build && \
	  ALBERT_TF_ANY_TENSORFLOW=1 "$$python" -m pip wheel --quiet --no-deps --wheel-dir dist . && ls dist/*.whl

clean:  ## remove the environments, builds and caches; output/ stays
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
