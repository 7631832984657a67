# `make help` lists the targets.
# make turns every exit code into 2; for the lab's own codes call .venv/bin/urteil.
.PHONY: demo docs help test setup lock compose-files clean

# uv has its own root certificates. Use the machine's where they exist: a company's proxy adds its
# certificate there.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export SSL_CERT_FILE ?= /etc/ssl/certs/ca-certificates.crt
endif

demo: setup ## play and judge a run with three faults; its report is runs/latest/report.html
	.venv/bin/urteil run demo

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: setup ## run lint, tests and simulation; ROOM=log runs the tests of one folder
ifdef ROOM
	@.venv/bin/tox run --quiet -e room -- $(ROOM)
else
	.venv/bin/tox run-parallel --quiet --parallel all --parallel-no-spinner
endif

docs: setup ## write docs/reference from the declarations, and the pages as a site in dist/docs
	@.venv/bin/tox run --quiet -e docs

setup: ## install packages and dependencies into .venv and the cache folder
	@.ci/setup
	@.venv/bin/urteil doctor --install --quiet

lock: setup ## write requirements.lock from pyproject.toml
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	    --extra dev --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	{ echo "# What the broker needs at run time, from requirements.lock (\`make lock\` writes both)."; \
	    awk '/^[a-z0-9-]+==/ { on = ($$1 ~ /^(cffi|crc32c|cryptography|kazoo|pyarrow|pycparser|uvloop)==/) } on && !/^ *#/' \
	    requirements.lock; } > compose/broker/requirements.txt

compose-files: setup ## write compose/compose.yaml and the files that it mounts
	.venv/bin/python -m urteil.harness.runtimes.containers.compose_files compose

clean: ## remove .venv, .tox and dist
	rm -rf .venv .tox dist
