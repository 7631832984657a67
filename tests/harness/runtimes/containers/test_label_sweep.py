"""Remains of a killed lab are removed from an engine, even after a failure of the engine."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import docker
import pytest

from urteil.harness.runtimes.containers import label_sweep as sweeping
from urteil.harness.runtimes.containers.engine import Engine


def test_request_to_a_failing_engine_is_repeated(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = f"org.urteil.test={uuid.uuid4().hex}"
    name, _, value = label.partition("=")
    network = engine.client.networks.create(uuid.uuid4().hex, labels={name: value})
    asked: list[str] = []
    client = sweeping._client

    def failing(url: str) -> Any:
        asked.append(url)
        if len(asked) == 1:
            raise docker.errors.APIError("not now")
        return client(url)

    monkeypatch.setattr(sweeping, "_client", failing)
    sweeping.sweep(engine.url, label)
    assert len(asked) > 2
    assert network.id not in [listed.id for listed in engine.client.networks.list()]


def test_certificates_of_a_remote_engine_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    with pytest.raises(docker.errors.TLSParameterError):  # they are looked for, and not there
        sweeping._client("tcp://127.0.0.1:2376")
