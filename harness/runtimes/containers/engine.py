"""The container engine in use: its address, and how its published ports are reached."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import docker
import requests

from urteil.harness.dependencies.installation import Dependency, MissingDependency

LOWEST_API = (1, 41)
TIMEOUT_S = 60
ANSWER_S = 10
"""For the first answer; later calls may take TIMEOUT_S."""

HOW = (
    "start Docker, or set DOCKER_HOST, or let the lab start an engine of its own "
    "(`urteil engine start`, on Debian as root)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine that answered. `client` is docker-py's, with a timeout on every call. Ports
    published on `bind` are reached at `advertised_host`. A `remote` engine cannot access this
    machine's files: copy them by archive."""

    client: docker.DockerClient
    url: str
    remote: bool
    advertised_host: str
    bind: str
    version: str
    architecture: str


def connect(url: str | None = None) -> Engine:
    """The engine at `url`, by default that of DOCKER_HOST or of the current docker context.

    Raises MissingDependency("docker", ...) with cause and remedy when no engine answers or its API
    is older than 1.41 (Docker 20.10).
    """
    try:
        client = _client(url)
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise MissingDependency("docker", _explain_failure(error, url)) from error
    try:
        return _describe_engine(client)
    except (docker.errors.DockerException, requests.RequestException) as error:
        client.close()
        raise MissingDependency("docker", _explain_failure(error, url)) from error
    except MissingDependency:
        client.close()
        raise


def describe_engine() -> Dependency:
    """One line of `urteil doctor`: an engine is needed for `--runtime docker` only."""
    try:
        engine = connect()
    except MissingDependency as error:
        return Dependency(
            name="docker", found=False, version="", where="", how=error.how, required=False
        )
    engine.client.close()
    return Dependency(
        name="docker",
        found=True,
        version=engine.version,
        where=engine.url,
        how=HOW,
        required=False,
    )


def _client(url: str | None) -> docker.DockerClient:
    host = url or os.environ.get("DOCKER_HOST") or ""
    ssh = {"use_ssh_client": True} if host.startswith("ssh://") else {}
    if url is not None:
        return docker.DockerClient(base_url=url, timeout=ANSWER_S, version="auto", **ssh)
    return docker.from_env(timeout=ANSWER_S, version="auto", **ssh)


def _describe_engine(client: docker.DockerClient) -> Engine:
    version = client.version()
    api = version.get("ApiVersion", "0")
    if tuple(int(part) for part in re.findall(r"\d+", api)[:2]) < LOWEST_API:
        raise MissingDependency("docker", _too_old(version.get("Version", "?"), api))
    if version.get("Os", "linux") != "linux":
        raise MissingDependency(
            "docker", f"the engine runs {version['Os']} containers, not linux ones"
        )
    client.api.timeout = TIMEOUT_S
    url = _url(client)
    remote = not url.startswith(("unix://", "npipe://"))
    return Engine(
        client=client,
        url=url,
        remote=remote,
        advertised_host=(urlsplit(url).hostname or "127.0.0.1") if remote else "127.0.0.1",
        bind="0.0.0.0" if remote else "127.0.0.1",
        version=version.get("Version", "?"),
        architecture=version.get("Arch", "amd64"),
    )


def _url(client: docker.DockerClient) -> str:
    """The address in the form of DOCKER_HOST. docker-py replaces addresses other than TCP by one of
    its own."""
    base = str(client.api.base_url)
    adapter = client.api.get_adapter(base)
    for scheme, attribute in (
        ("unix", "socket_path"),
        ("npipe", "npipe_path"),
        ("ssh", "ssh_host"),
    ):
        if where := getattr(adapter, attribute, None):
            return f"{scheme}://{where}"
    return base.replace("http://", "tcp://").replace("https://", "tcp://")


def _too_old(version: str, api: str) -> str:
    lowest = ".".join(map(str, LOWEST_API))
    return (
        f"the engine is {version} with API {api}, too old: "
        f"update it to Docker 20.10 (API {lowest}) or newer"
    )


def _explain_failure(error: BaseException, url: str | None) -> str:
    """Cause and remedy of a failed connection."""
    message = str(error)
    where = url or os.environ.get("DOCKER_HOST") or "the default socket or docker context"
    if "no longer supported" in message:
        return _too_old("of unknown version", "below 1.24")
    if "PermissionError" in message or "Permission denied" in message:
        return (
            f"permission denied on {where}: add yourself to its group "
            "(`sudo usermod -aG docker $USER`, then log in again) or run as root"
        )
    if "paramiko" in message:
        return f"{where} is reached by ssh: install the Python package docker[ssh]"
    if "FileNotFoundError" in message or "No such file" in message:
        return f"no engine at {where} (there is no socket): {HOW}"
    if "ConnectionRefusedError" in message or "Connection refused" in message:
        return f"no engine at {where} (nothing listens there): {HOW}"
    if "imed out" in message or "Timeout" in message:
        return f"the engine at {where} did not answer within {ANSWER_S} s: {HOW}"
    return f"no engine at {where} ({message}): {HOW}"
