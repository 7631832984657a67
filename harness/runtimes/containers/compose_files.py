"""Writes `compose/compose.yaml`, the files that it mounts, and `compose/external.toml`.

The compose cluster has the same plan as clusters of the runtime docker: three brokers, three
ZooKeeper servers, a Toxiproxy beside each and one for the clients. `make compose-files` runs this
module; a test compares the committed files with its output.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from urteil.chaos.observations import CLIENT
from urteil.chaos.topology import Address, Plan
from urteil.harness.cluster.ensemble import write_zookeeper, zookeeper_argv
from urteil.harness.runtimes.containers.pod_plan import CLIENT_PORT, ENTRY_PORT, PodPlan
from urteil.harness.runtimes.containers.pods import SYSCTLS
from urteil.harness.runtimes.docker import HOME, ImagePrograms
from urteil.harness.targets import UrteilTarget
from urteil.harness.targets.target import BrokerNode, common_properties, render

SUBNET = "198.19.253"
CONTROL_SUBNET = "198.19.252"
BOOTSTRAP, API, METRICS, DOORS = 19_092, 18_474, 19_404, 21_000
LOCALHOST = "127.0.0.1"
HEAD = "# Made by `make compose-files`. {}\n"
ABOUT = (
    "See docs/guide/containers.md:\n"
    "#   .venv/bin/urteil images build\n"
    "#   docker compose -f compose/compose.yaml up --wait"
)


def compose_plan() -> PodPlan:
    """The plan of the compose cluster, with ports that stay the same."""
    plan = PodPlan(SUBNET, brokers=3, zookeepers=3)
    plan.published = {
        (node, port): _host_address(plan, node, port)
        for node in plan.nodes
        for port in plan.published_ports(node)
    }
    return plan


def write_all(folder: Path) -> None:
    """Write everything under `folder`, replacing the output of earlier calls."""
    plan = compose_plan()
    nodes = folder / "nodes"
    shutil.rmtree(nodes, ignore_errors=True)
    for node in plan.zookeepers:
        write_zookeeper(plan, node, nodes / node, Path(HOME))
    for node in plan.brokers:
        _write_broker(plan, node, nodes / node)
    for node in plan.nodes:
        (nodes / f"{node}.proxies.json").write_text(_proxies(plan, node))
    (folder / "compose.yaml").write_text(_compose(plan))
    (folder / "external.toml").write_text(_external(plan))


def _host_address(plan: Plan, node: str, port: int) -> Address:
    place = plan.nodes.index(node)
    if port == plan.ports.toxiproxy:
        return LOCALHOST, API + place
    if port == plan.ports.metrics:
        return LOCALHOST, METRICS + place
    if node == CLIENT:
        return LOCALHOST, BOOTSTRAP + port - CLIENT_PORT - 1
    return LOCALHOST, DOORS + 200 * place + port - ENTRY_PORT


def _write_broker(plan: Plan, name: str, directory: Path) -> None:
    directory.mkdir(parents=True)
    node = _broker(plan, name)
    properties = {**common_properties(node), **UrteilTarget().properties(node)}
    (directory / "server.properties").write_text(render(properties))
    (directory / "hosts").write_text(plan.hosts_file(name))


def _broker(plan: Plan, name: str) -> BrokerNode:
    return BrokerNode(
        name=name,
        broker_id=int(name[1:]),
        home=Path(HOME),
        address=plan.address(name),
        internal_port=plan.ports.internal,
        client_port=plan.ports.client,
        for_clients=plan.lab_client_address(name),
        metrics=plan.metrics_listen(name),
        zookeeper_connect=plan.zookeeper_connect(),
    )


def _proxies(plan: Plan, node: str) -> str:
    links = [link for link in plan.links() if link.src == node]
    proxies = [
        *plan.entry_proxies(node),
        *(proxy for link in links for proxy in plan.proxies(link)),
    ]
    return json.dumps([proxy.config() for proxy in proxies], indent=1) + "\n"


def _compose(plan: PodPlan) -> str:
    services = "".join(_services(plan, node) for node in plan.nodes)
    networks = (
        "networks:\n"
        f"  control:\n    ipam:\n      config: [{{subnet: {CONTROL_SUBNET}.0/24}}]\n"
        f"  data:\n    internal: true\n    ipam:\n      config: "
        f"[{{subnet: {SUBNET}.0/24, gateway: {SUBNET}.254}}]\n"
    )
    return f"{HEAD.format(ABOUT)}name: urteil\nservices:\n{services}{networks}"


def _services(plan: PodPlan, node: str) -> str:
    beside = _service(
        f"toxiproxy-{node}",
        "toxiproxy",
        command=["/toxiproxy", "-host", "0.0.0.0", "-config", "/proxies.json"],
        extra=[f"network_mode: service:pod-{node}",
               f"volumes: [./nodes/{node}.proxies.json:/proxies.json:ro]"],
    )  # fmt: skip
    own = "" if node == CLIENT else _node(plan, node)
    return _pod(plan, node) + beside + own


def _pod(plan: PodPlan, node: str) -> str:
    ports = [
        "{}:{}:{}".format(*plan.published[node, port], port) for port in plan.published_ports(node)
    ]
    return _service(
        f"pod-{node}",
        "zookeeper",
        command=["sleep", "infinity"],
        extra=[
            f"hostname: {node}",
            "init: true",
            'healthcheck: {test: ["CMD", "true"], interval: 5s}',
            f"sysctls: {json.dumps(SYSCTLS)}",
            f"ports: {json.dumps(ports)}",
            f"networks: {{control: {{}}, data: {{ipv4_address: {plan.address(node)}}}}}",
        ],
    )


def _node(plan: PodPlan, node: str) -> str:
    is_zookeeper = node in plan.zookeepers
    files = ["zoo.cfg", "hosts", "log4j2.properties", "data/myid"] if is_zookeeper else [
        "server.properties", "hosts"]  # fmt: skip
    after = [f"toxiproxy-{node}: {{condition: service_started}}" for node in plan.nodes]
    if not is_zookeeper:
        after += [f"{zookeeper}: {{condition: service_healthy}}" for zookeeper in plan.zookeepers]
    own = (
        f"healthcheck: {json.dumps(_health_check(plan, node))}"
        if is_zookeeper
        else f"environment: {{URTEIL_CONFIG: {HOME}/server.properties}}"
    )
    return _service(
        node,
        "zookeeper" if is_zookeeper else "broker",
        command=zookeeper_argv(ImagePrograms(), Path(HOME)) if is_zookeeper else None,
        extra=[
            f"network_mode: service:pod-{node}",
            own,
            f"volumes: {json.dumps([f'./nodes/{node}/{file}:{HOME}/{file}:ro' for file in files])}",
            f"depends_on: {{{', '.join(after)}}}",
        ],
    )


def _health_check(plan: PodPlan, node: str) -> dict[str, object]:
    """A health check for a ZooKeeper server that listens on its own address only."""
    where = f"/dev/tcp/{plan.address(node)}/{plan.ports.zookeeper}"
    ask = f"exec 3<>{where} && printf srvr >&3 && grep -q Mode <&3"
    return {
        "test": ["CMD", "bash", "-c", ask],
        "interval": "1s",
        "timeout": "4s",
        "retries": 60,
    }


def _service(name: str, image: str, *, command: list[str] | None, extra: list[str]) -> str:
    lines = [f"container_name: urteil-{name}", f"image: urteil/{image}", "pull_policy: never"]
    if command is not None:
        lines.append(f"command: {json.dumps(command)}")
    body = "".join(f"    {line}\n" for line in [*lines, *extra])
    return f"  {name}:\n{body}"


def _external(plan: PodPlan) -> str:
    about = HEAD.format(
        "`urteil run demo --target external:compose/external.toml` judges\n"
        "# the cluster of compose.yaml. docs/guide/external.md explains each line."
    )
    bootstrap = json.dumps(plan.bootstrap())
    nodes = "".join(_external_node(plan, node) for node in (*plan.brokers, *plan.zookeepers))
    links = "".join(
        f'\n[[links]]\nfrom = "{link.src}"\nto = "{link.dst}"\n'
        f'toxiproxy = "{_join_address(plan.toxiproxy(link.src))}"\n'
        f"proxies = {json.dumps([proxy.name for proxy in plan.proxies(link)])}\n"
        f'probe = "{_join_address(plan.link_address(link))}"\n'
        for link in plan.links()
    )
    timeouts = ("zookeeper.session.timeout.ms", "replica.lag.time.max.ms")
    properties = common_properties(_broker(plan, plan.brokers[0]))
    settings = "\n[settings]\n" + "".join(f'"{name}" = "{properties[name]}"\n' for name in timeouts)
    head = f'{about}bootstrap = {bootstrap}\nzookeeper = "{plan.zookeeper_direct()}"\n'
    return head + settings + nodes + links


def _external_node(plan: PodPlan, node: str) -> str:
    container = f"urteil-{node}"
    state = "{{.State.Status}} {{.State.Pid}} {{.State.ExitCode}}"
    commands = {
        "direct": _join_address(plan.direct_address(node)),
        "state": f"docker inspect -f '{state}' {container}",
        "start": f"docker start {container}",
        "stop": f"docker stop -t 30 {container}",
        "kill": f"docker kill {container}",
        "pause": f"docker pause {container}",
        "resume": f"docker unpause {container}",
        "copy": f"docker cp {container}:{HOME}/data {{into}}",
        "log": f"docker logs {container}",
    }
    return f"\n[nodes.{node}]\n" + "".join(
        f'{name} = "{command}"\n' for name, command in commands.items()
    )


def _join_address(address: Address) -> str:
    return "{}:{}".format(*address)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
