"""Pods: one container for each node, which owns its network and outlives its restarts.

A pod is on two networks of the run. Its ports are published by `control`. Nodes reach each other on
`data`, which can be disconnected like a cable and reconnected with the same address. Both use
testcontainers' `Network` and `DockerContainer`.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import docker
import requests
from docker.models.containers import Container
from docker.types import IPAMConfig, IPAMPool
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from urteil.chaos.observations import CLIENT, LabFailure
from urteil.chaos.parallel import run_on_all
from urteil.chaos.topology import USUAL, Address, Layout
from urteil.harness.reaper import LABEL
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.pod_plan import PodPlan

AT_ONCE = 8
"""Requests to the engine at the same time."""
SUBNETS = [f"198.{second}.{third}" for second in (18, 19) for third in range(1, 250)]
TRIES = 50
SYSCTLS = {"net.ipv4.tcp_syn_retries": "2"}
"""A link is tried again soon after it healed."""

_settings = threading.RLock()


class Pods:
    """The pods of one run and their two networks; `close` removes them."""

    def __init__(
        self,
        engine: Engine,
        image: str,
        token: str,
        *,
        brokers: int,
        zookeepers: int,
        controllers: int,
        layout: Layout = USUAL,
    ) -> None:
        self._engine = engine
        self._labels = {LABEL: token}
        self._pods: dict[str, DockerContainer] = {}
        self._networks: list[Network] = []
        try:
            with _without_ryuk():
                control, _ = self._network(internal=False)
                self._data, subnet = self._network(internal=True)
                self.plan = PodPlan(
                    subnet,
                    brokers=brokers,
                    zookeepers=zookeepers,
                    controllers=controllers,
                    layout=layout,
                )
                run_on_all(
                    lambda node: self._start(node, image, control),
                    self.plan.nodes,
                    at_once=AT_ONCE,
                )
                if layout.network:
                    self._open_network(layout.network)
                self.plan.published = self._published_ports()
        except BaseException:
            with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
                self.close()
            raise

    def pod(self, node: str) -> Container:
        return self._pods[node].get_wrapped_container()

    def unplug(self, node: str) -> None:
        """Disconnect a pod from the data network, in both directions. Repeatable."""
        if self._is_connected(node):
            self._data_network().disconnect(self.pod(node))

    def plug(self, node: str) -> None:
        """Reconnect it with the same address. Repeatable."""
        if not self._is_connected(node):
            self._data_network().connect(self.pod(node), ipv4_address=self.plan.address(node))

    def _is_connected(self, node: str) -> bool:
        pod = self.pod(node)
        pod.reload()
        return self._data.name in pod.attrs["NetworkSettings"]["Networks"]

    def close(self) -> None:
        """Remove all pods and networks that can be removed, then raise the first failure.
        Repeatable."""
        pods, self._pods = list(self._pods.values()), {}
        networks, self._networks = self._networks, []
        try:
            run_on_all(_remove, pods, at_once=AT_ONCE)
        finally:
            run_on_all(self._remove_network, networks, at_once=AT_ONCE)

    def _remove_network(self, network: Network) -> None:
        """Remove a network. Other users' containers are disconnected first."""
        with contextlib.suppress(docker.errors.NotFound):
            removed = self._engine.client.networks.get(network.id or "")
            for container in removed.attrs.get("Containers") or {}:
                with contextlib.suppress(docker.errors.APIError):
                    removed.disconnect(container, force=True)
            removed.remove()

    def _data_network(self) -> Any:
        return self._engine.client.networks.get(self._data.id or "")

    def _open_network(self, name: str) -> None:
        """A network for other users' containers, on which the clients' pod answers to every node's
        name."""
        if self._engine.client.networks.list(names=[f"^{name}$"]):
            raise LabFailure(
                f"a container network {name} is there already: `docker network rm {name}` removes "
                "it, or give the cluster another --name"
            )
        self._network(internal=False, name=name)
        aliases = [*self.plan.brokers, *self.plan.zookeepers]
        self._engine.client.networks.get(name).connect(self.pod(CLIENT), aliases=aliases)

    def _network(self, *, internal: bool, name: str = "") -> tuple[Network, str]:
        """A new network with a free range of 198.18.0.0/15, and its first three octets."""
        for subnet in random.SystemRandom().sample(SUBNETS, TRIES):
            pool = IPAMPool(subnet=f"{subnet}.0/24", gateway=f"{subnet}.254")
            network = Network(
                docker_network_kw={
                    "driver": "bridge",
                    "internal": internal,
                    "ipam": IPAMConfig(pool_configs=[pool]),
                    "labels": self._labels,
                    "options": {"com.docker.network.bridge.host_binding_ipv4": self._engine.bind},
                }
            )
            network.name = name or network.name
            try:
                network.create()
            except docker.errors.APIError as error:
                if "overlap" not in str(error):
                    raise
                continue
            self._networks.append(network)
            return network, subnet
        raise LabFailure("no free network in 198.18.0.0/15: `docker network prune` may free some")

    def _start(self, node: str, image: str, control: Network) -> None:
        container = DockerContainer(image)
        self._pods[node] = container
        for inside, outside in self.plan.host_ports(node).items():
            container.with_bind_ports(inside, outside)
        container.with_command(["sleep", "infinity"]).with_network(control).with_kwargs(
            entrypoint=[],
            hostname=node,
            init=True,
            labels={**self._labels, "org.urteil.node": f"pod-{node}"},
            sysctls=SYSCTLS,
        )
        _start(container)
        self.plug(node)

    def _published_ports(self) -> dict[tuple[str, int], Address]:
        addresses = {}
        for node in self.plan.nodes:
            pod = self.pod(node)
            pod.reload()
            for inside, outside in pod.attrs["NetworkSettings"]["Ports"].items():
                if outside:
                    port = int(outside[0]["HostPort"])
                    addresses[node, int(inside.split("/")[0])] = (
                        self._engine.advertised_host,
                        port,
                    )
        return addresses


def _start(container: DockerContainer) -> None:
    """Start a container with free ports of the engine.

    The engine chooses among few ports; after a conflict it continues with the next ones.
    """
    try:
        container.start()
    except docker.errors.APIError as error:
        if not port_taken(error):
            raise
        start_published(container.get_wrapped_container())


def start_published(container: Container) -> None:
    """Start a container whose ports the engine chooses, until it finds free ones."""
    for attempt in range(TRIES):
        try:
            container.start()
            return
        except docker.errors.APIError as error:
            if not port_taken(error) or attempt == TRIES - 1:
                raise


def port_taken(error: docker.errors.APIError) -> bool:
    return "address already in use" in str(error) or "port is already allocated" in str(error)


def _remove(pod: DockerContainer) -> None:
    """Remove a pod. After a failed start it may have no container."""
    with contextlib.suppress(docker.errors.NotFound):
        pod.stop()


@contextlib.contextmanager
def _without_ryuk() -> Iterator[None]:
    """Disable Ryuk, whose image may be missing. This is a process-wide setting, so it is restored.

    `harness/reaper.py` cleans up after a killed lab.
    """
    with _settings:
        before = testcontainers_config.ryuk_disabled
        testcontainers_config.ryuk_disabled = True
        try:
            yield
        finally:
            testcontainers_config.ryuk_disabled = before
