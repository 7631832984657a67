# Two commands: `make demo` runs the main job, `make test` passes the tests. Both set everything up.
# `make test ROOM=log` runs the tests of one room; a wrong name lists the rooms.
# make turns every exit code into 2; for the lab's own codes call .venv/bin/urteil.
.PHONY: demo test setup lock compose-files clean

# uv trusts roots of its own; where the machine keeps some (a company's proxy adds its own there),
# every tool shall trust those.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export SSL_CERT_FILE ?= /etc/ssl/certs/ca-certificates.crt
endif

demo: setup
	.venv/bin/urteil run demo

test: setup
ifdef ROOM
	@.venv/bin/tox run --quiet -e room -- $(ROOM)
else
	.venv/bin/tox run-parallel --quiet --parallel all --parallel-no-spinner
endif

setup:
	@.ci/setup
	@.venv/bin/urteil doctor --install --quiet

lock: setup
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	    --extra dev --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	{ echo "# What the broker needs at run time, from requirements.lock (\`make lock\` writes both)."; \
	    awk '/^[a-z0-9-]+==/ { on = ($$1 ~ /^(cffi|crc32c|cryptography|kazoo|pyarrow|pycparser|uvloop)==/) } on && !/^ *#/' \
	    requirements.lock; } > compose/broker/requirements.txt

# What compose/compose.yaml mounts, and that file: laid out by the lab's own plan.
compose-files: setup
	.venv/bin/python -m urteil.harness.runtimes.containers.compose_files compose

clean:
	rm -rf .venv .tox dist
