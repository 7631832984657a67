"""Administration by znodes, for brokers without the requests.

Every controller with ZooKeeper watches these znodes: a reassignment (removed at its end), a
preferred election (removed once it is processed), settings with their notification, and the
assignment of a topic. Sources: `ZkData.scala` and `AdminUtils.scala` of the releases. LabFailure
means that ZooKeeper does not answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from urteil.chaos.observations import LabFailure

REASSIGN, ELECT = "/admin/reassign_partitions", "/admin/preferred_replica_election"
CHANGES = "/config/changes/config_change_"
ANSWER_S = 5.0
Slot = tuple[str, int]


def request_reassignment(client: KazooClient, order: Mapping[Slot, Sequence[int]]) -> bool:
    """Request replicas by partition, the preferred one first. False while the controller has not
    finished an earlier request."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in order.items()
    ]
    return _request(client, REASSIGN, partitions)


def request_election(client: KazooClient, slots: Iterable[Slot]) -> bool:
    """Request preferred leaders. False while an earlier request is not processed."""
    partitions = [{"topic": topic, "partition": partition} for topic, partition in slots]
    return _request(client, ELECT, partitions)


def write_settings(
    client: KazooClient, entity: str, changes: Mapping[str, str | None]
) -> dict[str, str]:
    """Change settings of `topics/NAME`, `clients/NAME` or `brokers/<default>`; None removes one.
    Returns all of them."""
    path = f"/config/{entity}"
    _await(client.ensure_path_async(path))
    data, _ = _await(client.get_async(path))
    settings = dict(json.loads(data)["config"]) if data else {}
    for name, value in changes.items():
        settings.pop(name, None)
        if value is not None:
            settings[name] = value
    _await(client.set_async(path, _encode({"version": 1, "config": settings})))
    notification = {"version": 2, "entity_path": entity}
    _await(client.create_async(CHANGES, _encode(notification), sequence=True, makepath=True))
    return settings


def write_partitions(client: KazooClient, topic: str, total: int, brokers: Sequence[int]) -> None:
    """Add partitions up to this number, with as many replicas as the first one, in turn."""
    path = f"/brokers/topics/{topic}"
    data, stat = _await(client.get_async(path))
    value = json.loads(data)
    assigned = value["partitions"]
    width = len(assigned["0"])
    for number in range(len(assigned), total):
        assigned[str(number)] = [brokers[(number + n) % len(brokers)] for n in range(width)]
    _await(client.set_async(path, _encode(value), version=stat.version))


def _request(client: KazooClient, path: str, partitions: list[dict[str, Any]]) -> bool:
    value = _encode({"version": 1, "partitions": partitions})
    try:
        _await(client.create_async(path, value, makepath=True))
    except NodeExistsError:
        return False
    return True


def _await(request: Any) -> Any:
    try:
        return request.get(timeout=ANSWER_S)
    except NodeExistsError:
        raise
    except (KazooException, KazooTimeoutError) as error:
        raise LabFailure(f"ZooKeeper does not answer: {error!r}") from error


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
