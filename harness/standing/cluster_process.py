"""The process that owns a standing cluster until SIGTERM.

Run as `python -m urteil.harness.standing.cluster_process FILE DIR`.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path

import msgspec
import psutil

from urteil.chaos.observations import LabFailure, NotHealthy
from urteil.harness.cluster import Cluster
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.fault_server import FaultServer
from urteil.harness.runtimes.containers.pod_plan import PodPlan
from urteil.harness.standing.client_files import CA, write_clients
from urteil.harness.standing.defaults import broker_defaults
from urteil.harness.standing.lifecycle import clients_folder, write_state
from urteil.harness.standing.state_file import StandingCluster, StandingRequest
from urteil.harness.targets import parse_target
from urteil.harness.wakeup_pipe import WakeupPipe


def run_cluster(request: StandingRequest, directory: Path) -> None:
    """Start the cluster, write its state file, and wait for a signal."""
    ended = WakeupPipe()
    ended.wake_on(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    access = request.access()
    with Cluster(
        request.spec,
        parse_target(request.target),
        directory,
        runtime=request.runtime,
        hosts=request.hosts,
        access=access,
    ) as cluster:
        cluster.missing_capabilities()
        key = secrets.token_bytes(16)
        faults = FaultServer(cluster.controls(), cluster.bootstrap, key)
        state = describe_cluster(request, cluster)
        write_state(msgspec.structs.replace(state, fault_port=faults.port, fault_key=key.hex()))
        ended.wait()


def describe_cluster(request: StandingRequest, cluster: Cluster) -> StandingCluster:
    """The state of a ready cluster. Writes its users' files."""
    plan, security = cluster.plan, cluster.access.security
    bootstrap = plan.users_bootstrap()
    network_bootstrap = plan.bootstrap_at(plan.ports.network) if request.network else []
    clients = clients_folder(request.name)
    users = write_clients(clients, cluster.access, bootstrap, network_bootstrap)
    nodes = (*plan.metadata_nodes, *plan.brokers)
    return StandingCluster(
        name=request.name,
        target=request.target,
        runtime=request.runtime,
        brokers=request.brokers,
        zookeepers=len(plan.zookeepers),
        controllers=len(plan.controllers),
        directory=str(cluster.run_dir),
        keeper=os.getpid(),
        keeper_began=psutil.Process().create_time(),
        bootstrap=bootstrap,
        lab_bootstrap=cluster.bootstrap,
        metrics=cluster.metrics,
        zookeeper=",".join(
            "{}:{}".format(*plan.zookeeper_for_users(zookeeper)) for zookeeper in plan.zookeepers
        ),
        ports=sorted(plan.fixed_ports().values()),
        racks={
            name: rack
            for name, node in cluster.nodes.items()
            if (rack := cluster.access.properties(node).get("broker.rack"))
        },
        defaults=broker_defaults(cluster),
        protocol=security.protocol,
        mechanisms=list(security.mechanisms),
        users=users,
        clients=str(clients),
        ca=str(clients / CA) if security.tls else "",
        network=request.network,
        network_bootstrap=network_bootstrap,
        network_zookeeper=",".join(plan.network_zookeeper()) if isinstance(plan, PodPlan) else "",
        metadata_logs={node: str(folder) for node, folder in cluster.metadata_logs().items()},
        pids={node: cluster.runtime.status(node).pid or 0 for node in nodes},
        hosts={node: host for node in nodes if (host := plan.host_of(node))},
    )


def main() -> int:
    request_file, directory = map(Path, sys.argv[1:])
    request = msgspec.json.decode(request_file.read_bytes(), type=StandingRequest)
    try:
        run_cluster(request, directory)
    except (LabFailure, NotHealthy, MissingDependency) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
