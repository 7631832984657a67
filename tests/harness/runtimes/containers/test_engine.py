"""Detection of an engine, and the messages without one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import docker
import pytest

from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.runtimes.containers import engine as engines
from urteil.harness.runtimes.containers.engine import Engine, connect, describe_engine

VERSION = {"Version": "99.1", "ApiVersion": "1.41", "Arch": "arm64", "Os": "linux"}


class FakeEngine(ThreadingHTTPServer):
    """Answers every request with `version`."""

    version: dict[str, str] = VERSION

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, FakeEngine)
        body = json.dumps(self.server.version).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def fake() -> Iterator[FakeEngine]:
    server = FakeEngine(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_local_socket_is_reached_on_loopback(engine: Engine) -> None:
    if engine.remote:
        assert engine.bind == "0.0.0.0"
    else:
        assert engine.url.startswith("unix:///")
        assert (engine.advertised_host, engine.bind) == ("127.0.0.1", "127.0.0.1")
    assert engine.client.ping()


def test_an_engine_by_tcp_is_remote(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", fake.url.replace("127.0.0.1", "localhost"))
    engine = connect()
    assert (engine.remote, engine.advertised_host, engine.bind) == (True, "localhost", "0.0.0.0")
    assert (engine.version, engine.architecture) == ("99.1", "arm64")


def test_the_docker_context_is_used(
    fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    (tmp_path / "config.json").write_text("{}")  # without one, docker-py writes where it stands
    docker.context.ContextAPI.create_context("far", host=fake.url, skip_tls_verify=True)
    assert connect().url == fake.url


def test_old_engine_is_rejected_with_its_version(fake: FakeEngine) -> None:
    fake.version = VERSION | {"Version": "19.03.5", "ApiVersion": "1.40"}
    with pytest.raises(
        MissingDependency, match=r"19\.03\.5 with API 1\.40, too old: update"
    ) as failed:
        connect(fake.url)
    assert failed.value.name == "docker"


def test_ancient_engine_is_rejected(fake: FakeEngine) -> None:
    fake.version = VERSION | {"ApiVersion": "1.12"}
    with pytest.raises(MissingDependency, match="too old: update it"):
        connect(fake.url)


def test_windows_containers_are_rejected(fake: FakeEngine) -> None:
    fake.version = VERSION | {"Os": "windows"}
    with pytest.raises(MissingDependency, match="windows containers"):
        connect(fake.url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("unix:///nowhere/docker.sock", "there is no socket.*urteil engine start"),
        ("tcp://127.0.0.1:9", "nothing listens there"),
        ("tcp://127.0.0.1", "port is required"),
    ],
)
def test_missing_engine_names_its_address(url: str, message: str) -> None:
    with pytest.raises(MissingDependency, match=message) as failed:
        connect(url)
    assert url in str(failed.value)


def test_forbidden_socket_names_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str | None) -> None:
        raise docker.errors.DockerException("Connection aborted: PermissionError(13, ...)")

    monkeypatch.setattr(engines, "_client", refuse)
    with pytest.raises(MissingDependency, match=r"permission denied on .*usermod -aG docker"):
        connect()


def test_doctor_names_the_remedy_for_a_missing_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    part = describe_engine()
    assert (part.found, part.required) == (False, False)
    assert "urteil engine start" in part.how
