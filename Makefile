# python3 may be any Python from 3.11 to 3.13: make PYTHON=python3.12 lab
PYTHON ?= python3
# test-gpu in pieces that take some minutes each: make PIECE=1/4 test-gpu
PIECE ?= 1/1
.PHONY: lab test quick test-long test-gpu stress fuzz notebooks site bench help

lab:        ## open the book in JupyterLab
	@$(PYTHON) -m labkit lab

test:       ## everything that CI checks
	@$(PYTHON) -m labkit.setup.environment dev toolchain torch
	.venv/bin/python -m ruff check . && .venv/bin/python -m ruff format --check .
	.venv/bin/python -m pytest -n logical --dist loadfile --no-loadscope-reorder --nbval tests notebooks/solutions

quick:      ## the tests that a change since `main` touches, the nearest first: three minutes
	@$(PYTHON) -m labkit.setup.environment dev toolchain torch
	.venv/bin/python -m ruff check . && .venv/bin/python -m ruff format --check .
	.venv/bin/python tests/quick.py

test-long:  ## all cases where `make test` takes some, 10,000 random kernels, the blank notebooks: hours
	LABKIT_TEST_LONG=1 .venv/bin/python -m pytest -n logical tests/simulator/test_random_kernels.py
	LABKIT_TEST_LONG=1 .venv/bin/python -m pytest -n logical --dist loadfile --nbval tests notebooks \
		--ignore tests/simulator/test_random_kernels.py

test-gpu:   ## all that runs kernels on a GPU
	@$(PYTHON) -m labkit.setup.environment dev torch
	.venv/bin/python -m pytest --on-gpu --piece $(PIECE) tests

stress:     ## threads, streams, graphs and shapes at random on a GPU, for eight minutes
	STRESS_MINUTES=8 .venv/bin/python -m pytest -s tests/calls/test_stress.py

fuzz:       ## look for kernels that break the simulator, for ten minutes
	FUZZ_MINUTES=10 .venv/bin/python -m pytest --timeout=0 tests/simulator/test_fuzz.py

notebooks:  ## build the notebooks from notebooks/source
	@$(PYTHON) -m labkit build

site:       ## the book and the reference of its functions, as pages under site/build/html/html
	@$(PYTHON) -m labkit.setup.environment site
	.venv/bin/python -m sphinx -q -b html site site/build/html

help:       ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /: /'

bench:      ## measure the GEMM ladder beside its baselines on this GPU
	@$(PYTHON) -m labkit bench gemm
