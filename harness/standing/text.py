"""A standing cluster as text, as JSON, and as lines for a shell."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from urteil.harness.standing.client_files import NETWORK_FOLDER, SUFFIXES
from urteil.harness.standing.state_file import StandingCluster

INTERNAL = ("fault_port", "fault_key", "keeper_began", "lab_bootstrap")
"""Private fields: the key admits faults, and the lab's listener has no ACLs."""
COLUMN = 10
PER_LINE = 3


def as_text(cluster: StandingCluster) -> str:
    """One line a fact, with its name in front."""
    option = "" if cluster.name == "default" else f" --name {cluster.name}"
    rows = [
        ("cluster", f"{cluster.name}: {cluster.brokers} brokers, target {cluster.target}, "
                    f"runtime {cluster.runtime}"),
        ("bootstrap", cluster.bootstrap_servers),
        *([("zookeeper", cluster.zookeeper)] if cluster.zookeeper else []),
        *_ports(cluster),
        *_network(cluster),
        *(("metrics", f"http://{address}/metrics") for address in cluster.metrics),
        *_security(cluster),
        *_defaults(cluster),
        ("files", cluster.directory),
        *((node, _life(cluster, node)) for node in cluster.pids),
        ("variables", f'eval "$(urteil cluster status{option} --export)"'),
        ("stop it", f"urteil cluster down{option}"),
    ]  # fmt: skip
    return "\n".join(f"{name:<{COLUMN}} {value}" for name, value in rows)


def as_json(cluster: StandingCluster) -> dict[str, Any]:
    """The whole state for JSON, without private fields."""
    fields: dict[str, Any] = msgspec.to_builtins(cluster)
    return {name: value for name, value in fields.items() if name not in INTERNAL}


def variables(cluster: StandingCluster) -> dict[str, str]:
    """Environment variables with their values, without empty ones."""
    user = cluster.users[0] if cluster.users else None
    files = user.files if user else {}
    values = {
        "CLUSTER": cluster.name,
        "BOOTSTRAP": cluster.bootstrap_servers,
        "ZOOKEEPER": cluster.zookeeper,
        "METRICS": " ".join(f"http://{address}/metrics" for address in cluster.metrics),
        "NETWORK": cluster.network,
        "NETWORK_BOOTSTRAP": ",".join(cluster.network_bootstrap),
        "NETWORK_ZOOKEEPER": cluster.network_zookeeper,
        "CLIENTS": cluster.clients,
        "SECURITY_PROTOCOL": cluster.protocol,
        "SASL_MECHANISM": next(iter(cluster.mechanisms), ""),
        "SASL_USERNAME": user.name if user and cluster.mechanisms else "",
        "SASL_PASSWORD": user.password if user and cluster.mechanisms else "",
        "CA_PEM": cluster.ca,
        "JAVA_CONFIG": files.get("java", ""),
        "LIBRDKAFKA_CONFIG": files.get("librdkafka", ""),
        "KAFKA_PYTHON_CONFIG": files.get("kafka-python", ""),
    }
    return {name: value for name, value in values.items() if value}


def as_shell_lines(cluster: StandingCluster) -> str:
    """`export NAME=value` a line, quoted."""
    return "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in variables(cluster).items()
    )


def _ports(cluster: StandingCluster) -> list[tuple[str, str]]:
    if not cluster.ports:
        return []
    first, last = cluster.ports[0], cluster.ports[-1]
    return [
        ("ports", f"{first} to {last} of 127.0.0.1, the same at every start with --port {first}")
    ]


def _network(cluster: StandingCluster) -> list[tuple[str, str]]:
    if not cluster.network:
        return []
    return [
        ("network", f"docker run --network {cluster.network} -v {cluster.clients}:/clients:ro ..."),
        ("  in it", f"bootstrap {','.join(cluster.network_bootstrap)}"),
        ("", f"zookeeper {cluster.network_zookeeper}"),
        ("", f"clients in /clients/{NETWORK_FOLDER}"),
    ]


def _security(cluster: StandingCluster) -> list[tuple[str, str]]:
    rows = [("security", " ".join([cluster.protocol, " or ".join(cluster.mechanisms)]).strip())]
    rows += [("authority", cluster.ca)] if cluster.ca else []
    for user in cluster.users if cluster.protocol != "PLAINTEXT" else ():
        login = f"{user.name} / {user.password}" if user.password else user.name
        rows.append(("user", f"{login}, rights: {user.rights}"))
    names = ", ".join(user.name for user in cluster.users)
    kinds = ", ".join(f".{suffix} ({kind})" for kind, suffix in SUFFIXES.items())
    return [*rows, ("clients", f"{cluster.clients}: {names} as {kinds}")]


def _defaults(cluster: StandingCluster) -> list[tuple[str, str]]:
    settings = [f"{name}={value}" for name, value in cluster.defaults.items()]
    lines = [", ".join(settings[at : at + PER_LINE]) for at in range(0, len(settings), PER_LINE)]
    return [("settings" if at == 0 else "", line) for at, line in enumerate(lines)]


def _life(cluster: StandingCluster, node: str) -> str:
    host, rack = cluster.hosts.get(node), cluster.racks.get(node)
    where = f" on {host}" if host else ""
    state = "dead" if node in cluster.dead else "lives"
    return f"pid {cluster.pids[node]}{where}, {state}" + (f", rack {rack}" if rack else "")
