# The targets for developers; `make help` lists them. Each one creates the environment that it needs from git, make and
# Python 3.11 or newer. PYTHON=... names one, PYTEST_ARGS=... goes to pytest.

SHELL := /bin/sh
PYTEST := .venv/bin/python -m pytest
# Many tests wait for servers and clocks, so three at a time pay off on two cores.
PYTEST_ARGS := -n 3

.PHONY: help demo test test-all check coverage acceptance test-containers test-slurm test-install test-power test-nfs \
	chaos fuzz test-floors test-newest check-workflows actionlint lock bench bench-local bench-sync bench-s3 pyz dist contract-map clean

help:
	@echo 'make demo             a job is killed, resumes and is pruned, told step by step (under a minute)'
	@echo 'make test             the tests, on the servers that this machine has; pytest says which'
	@echo 'make test-all         these tests and their exhaustive variants, as CI runs them'
	@echo 'make check            format, lint, types, imports'
	@echo 'make coverage         the tests of the domain, which must cover all of it'
	@echo 'make acceptance       runs of the real frameworks (installs torch and them; needs strace)'
	@echo 'make test-containers  the tests that need servers, with the servers in containers; needs an engine'
	@echo 'make test-slurm       a real Slurm of two nodes (installs torch); needs root and the packages of Debian that .ci/run names'
	@echo 'make test-install     builds the package and installs it with pip, pipx and uv'
	@echo 'make test-power       power cuts; needs root, /dev/fuse, loop devices and the packages of Debian that .ci/run names'
	@echo 'make test-nfs         an emulated machine with a real NFS server; needs root, qemu and debootstrap; half an hour'
	@echo 'make chaos            processes killed at random for MINUTES (2), on a directory and on S3 behind a bad network'
	@echo 'make fuzz             for MINUTES (2) each, what parses the answers and files of others; what it finds is in .fuzz/'
	@echo 'make test-floors      the tests of the adapters on the oldest libraries that pyproject.toml allows'
	@echo 'make test-newest      the same on the newest that the package index has'
	@echo 'make check-workflows  zizmor on .github/'
	@echo 'make actionlint       actionlint on .github/workflows/; needs GitHub'
	@echo 'make lock             pins requirements*.txt anew from pyproject.toml, with hashes (LOCK_ARGS=--upgrade: newest)'
	@echo 'make bench            times as ratios: start-up, parsing, listing; on S3 beside aws, rclone and s5cmd'
	@echo 'make pyz              dist/publish.pyz, one file for nodes with nothing but Python'
	@echo 'make dist             sdist and wheel, checked'
	@echo 'make contract-map     which tests and modules belong to each rule of docs/contract.md'
	@echo 'make clean            removes what the others made'

demo: .venv-demo/.ready
	.venv-demo/bin/python demo/run.py

test: .venv/.ready
	$(PYTEST) $(PYTEST_ARGS)

test-all: .venv/.ready
	$(PYTEST) -m 'not acceptance and not containers and not slurm and not install and not power and not nfs' $(PYTEST_ARGS)

check: .venv/.ready
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

coverage: .venv/.ready
	$(PYTEST) --cov --cov-report=term-missing tests/domain tests/model $(PYTEST_ARGS)

acceptance: .venv/.ready .venv-acceptance/.ready
	PUBLISH_TEST_TORCH_PYTHON=.venv-acceptance/bin/python $(PYTEST) -m acceptance $(PYTEST_ARGS)

test-containers: export PUBLISH_TEST_SERVERS ?= pulled
test-containers: .venv/.ready
	$(PYTEST) -m 'servers or containers' $(PYTEST_ARGS)

test-slurm: .venv/.ready .venv-acceptance/.ready
	PUBLISH_TEST_TORCH_PYTHON=.venv-acceptance/bin/python $(PYTEST) -m slurm

test-power: .venv/.ready
	$(PYTEST) -m power tests/power

# Ends by itself. SEED=... draws as an earlier run did.
MINUTES := 2
chaos: .venv/.ready
	.venv/bin/python -m tests.chaos.run $(MINUTES) $(SEED)

fuzz: .venv-fuzz/.ready
	.venv-fuzz/bin/python -m tests.fuzz.run $(MINUTES)

# The machine is kept outside the repository, since making it takes minutes.
test-nfs: export PUBLISH_TEST_NFS_CACHE ?= $(HOME)/.cache/publish-test-nfs
test-nfs: .venv/.ready
	.venv/bin/python -m tests.nfs.run

test-install: .venv/.ready
	$(PYTEST) -m install

# What differs between versions of the libraries shows in the adapters and in how a program speaks on the wire.
LIBRARY_TESTS := tests/adapters tests/contract tests/integration/test_s3_wire.py tests/integration/test_s3_schedules.py
test-floors: .venv-floors/.ready
	.venv-floors/bin/python -m pytest $(LIBRARY_TESTS) $(PYTEST_ARGS)

test-newest: .venv-newest/.ready
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable .
	.venv-newest/bin/python -m pytest $(LIBRARY_TESTS) $(PYTEST_ARGS)

check-workflows: .venv/.ready
	.venv/bin/zizmor --offline --pedantic --quiet .github

# Apart from the others, as its installation downloads a binary from GitHub.
actionlint: .venv-actionlint/.ready
	.venv-actionlint/bin/actionlint

bench: bench-local bench-sync bench-s3

bench-local: .venv/.ready pyz
	.venv/bin/python bench/local.py dist/publish.pyz

bench-sync: .venv/.ready
	.venv/bin/python bench/sync.py

bench-s3: .venv/.ready
	.venv/bin/python bench/s3.py

pyz: .venv/.ready
	.venv/bin/python tools/make_pyz.py dist/publish.pyz

# Pins stay as they are unless pyproject.toml excludes them; `make lock LOCK_ARGS=--upgrade` takes the newest of all.
COMPILE = .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--annotation-style line --custom-compile-command 'make lock' $(LOCK_ARGS)
lock:
	$(COMPILE) pyproject.toml --output-file requirements.txt
	$(COMPILE) pyproject.toml --resolution lowest-direct --output-file requirements-floors.txt
	$(COMPILE) --group build --output-file requirements-build.txt
	$(COMPILE) pyproject.toml --group dev --constraint requirements.txt --output-file requirements-dev.txt
	$(COMPILE) --group actionlint --output-file requirements-actionlint.txt
	$(COMPILE) pyproject.toml --group fuzz --constraint requirements-dev.txt --output-file requirements-fuzz.txt

dist: .venv/.ready
	rm -rf build dist/*.whl dist/*.tar.gz
	.venv/bin/python -m build --no-isolation
	.venv/bin/twine check --strict dist/*.whl dist/*.tar.gz
	.venv/bin/check-wheel-contents dist/*.whl

contract-map: .venv/.ready
	@.venv/bin/python -m tests.contract_map

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# One virtual environment per file of requirements. The stamp is made last, so what was cut short is done again.
HASHED := --require-hashes

.venv/.ready: requirements-dev.txt pyproject.toml bin/publish
	@tools/make_venv .venv requirements-dev.txt '$(PYTHON)' $(HASHED)
	.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv-demo/.ready: requirements.txt requirements-build.txt pyproject.toml bin/publish
	@tools/make_venv .venv-demo 'requirements.txt requirements-build.txt' '$(PYTHON)' $(HASHED)
	.venv-demo/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv-actionlint/.ready: requirements-actionlint.txt
	@tools/make_venv .venv-actionlint requirements-actionlint.txt '$(PYTHON)' $(HASHED)
	@touch $@

.venv-fuzz/.ready: requirements-fuzz.txt requirements-build.txt pyproject.toml bin/publish
	@tools/make_venv .venv-fuzz 'requirements-fuzz.txt requirements-build.txt' '$(PYTHON)' $(HASHED)
	.venv-fuzz/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# The tests' tools first, then the floors over them: moto's boto3 asks for a newer botocore, which its server can do without.
.venv-floors/.ready: requirements-dev.txt requirements-floors.txt pyproject.toml bin/publish
	@tools/make_venv .venv-floors requirements-dev.txt '$(PYTHON)' $(HASHED)
	@tools/make_venv .venv-floors requirements-floors.txt '$(PYTHON)' $(HASHED) --no-deps
	.venv-floors/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv-newest/.ready: requirements-dev.txt pyproject.toml bin/publish
	@tools/make_venv .venv-newest requirements-dev.txt '$(PYTHON)' $(HASHED)
	@touch $@

# Without hashes: its torch is the build for the CPU, which is not PyPI's file. Nothing of it is shipped.
.venv-acceptance/.ready: requirements-acceptance.txt
	@tools/make_venv .venv-acceptance requirements-acceptance.txt '$(PYTHON)' --no-deps
	@touch $@
