"""The values of the broker's metrics, read at each scrape (declarations.py names them)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.statuses import PartitionStatus
from urteil.broker.metrics.cleaner_metrics import cleaner_families
from urteil.broker.metrics.request_metrics import request_families
from urteil.broker.metrics.text_format import (
    Family,
    Labels,
    Sample,
    build_family,
    build_single,
    quantiles_ms,
)
from urteil.broker.quotas.quota_table import Quota

if TYPE_CHECKING:
    from urteil.broker.base.clock import Clock
    from urteil.broker.controller.controller import Controller
    from urteil.broker.log.cleaner.cleaner import Cleaner
    from urteil.broker.log.log_manager import LogManager
    from urteil.broker.log.partition_log import PartitionLog
    from urteil.broker.metrics.request_counts import RequestCounts
    from urteil.broker.quotas.throttle import Throttle
    from urteil.broker.replication.replica_manager import ReplicaManager
    from urteil.broker.replication.traffic import Traffic


class MetricSources(Protocol):
    """The parts of a broker that a scrape reads; it has served since `began_s` of the loop."""

    began_s: float
    clock: Clock
    cleaner: Cleaner
    controller: Controller
    logs: LogManager
    replicas: ReplicaManager
    requests: RequestCounts
    throttle: Throttle


def blocks(broker: MetricSources) -> Iterator[str]:
    """Yield the text of all metrics of a started broker, in pieces."""
    for family in families(broker):
        yield from family.blocks()


def families(broker: MetricSources) -> Iterator[Family]:
    """Yield all metrics; each is read when it is consumed."""
    yield from _controller(broker.controller)
    yield from _replicas(broker.replicas)
    yield from _topics(broker.replicas.traffic)
    up_s = asyncio.get_running_loop().time() - broker.began_s
    yield from request_families(broker.requests, up_s)
    yield from _purgatories(broker.replicas)
    yield from _throttle_families(broker.throttle)
    yield from _logs(broker.logs.logs())
    yield from _directories(broker.logs)
    yield from cleaner_families(broker.cleaner, broker.logs.paths, broker.clock.now_ms())


# The controller: 0 on all other brokers.


def _controller(controller: Controller) -> Iterator[Family]:
    term, elections = controller.term, controller.elections
    prefix = "kafka_controller_kafkacontroller"
    yield build_single(f"{prefix}_activecontrollercount", int(controller.is_active))
    cluster = term.context if term is not None else ControllerContext(-1, 0, 0)
    for name, value in _cluster(cluster).items():
        yield build_single(f"{prefix}_{name}", value)
    statistics = "kafka_controller_controllerstats"
    times = f"{statistics}_leaderelectionrateandtimems"
    yield build_single(f"{times}_count", elections.rounds)
    yield build_family(times, quantiles_ms(elections.recent))
    yield build_single(f"{statistics}_uncleanleaderelections_total", elections.unclean)


def _cluster(context: ControllerContext) -> dict[str, int]:
    tps = context.partitions()
    offline = imbalanced = 0
    for tp in tps:
        offline += context.statuses[tp] is PartitionStatus.OFFLINE
        state = context.states.get(tp)
        imbalanced += state is not None and state.leader != context.replicas(tp)[0]
    return {
        "offlinepartitionscount": offline,
        "preferredreplicaimbalancecount": imbalanced,
        "globaltopiccount": len(context.topics),
        "globalpartitioncount": len(context.statuses),
        "topicstodeletecount": len(context.deleting),
        "activebrokercount": len(context.brokers),
    }


# Partitions and topics of this broker.


def _replicas(replicas: ReplicaManager) -> Iterator[Family]:
    led = [partition for partition in replicas.partitions.values() if partition.is_leader]
    isrs = [(len(partition.isr.committed), partition) for partition in led]
    changes = replicas.proposals
    values = {
        "partitioncount": len(replicas.partitions),
        "offlinereplicacount": len(replicas.offline),
        "leadercount": len(led),
        "underreplicatedpartitions": sum(
            size < replica.replication_factor for size, replica in isrs
        ),
        "reassigningpartitions": sum(partition.is_reassigning for partition in led),
        "underminisrpartitioncount": sum(
            size < replica.effective_min_isr for size, replica in isrs
        ),
        "atminisrpartitioncount": sum(size == replica.effective_min_isr for size, replica in isrs),
        "isrshrinks_total": changes.shrinks,
        "isrexpands_total": changes.expands,
        "failedisrupdates_total": changes.refusals,
    }
    for name, value in values.items():
        yield build_single(f"kafka_server_replicamanager_{name}", value)


def _topics(traffic: Traffic) -> Iterator[Family]:
    shown = [((), traffic.sums()), *(((("topic", name),), topic) for name, topic in
             list(traffic.topics.items()))]  # fmt: skip
    for name, field in (
        ("bytesin", "bytes_in"),
        ("bytesout", "bytes_out"),
        ("messagesin", "messages_in"),
    ):
        samples: list[Sample] = [(labels, getattr(traffic, field)) for labels, traffic in shown]
        yield build_family(f"kafka_server_brokertopicmetrics_{name}_total", samples)


def _purgatories(replicas: ReplicaManager) -> Iterator[Family]:
    waiting = replicas.purgatories.items()
    for name, field in (("purgatorysize", "watched"), ("numdelayedoperations", "delayed")):
        samples: list[Sample] = [
            ((("delayedOperation", kind),), getattr(purgatory, field))
            for kind, purgatory in waiting
        ]
        yield build_family(f"kafka_server_delayedoperationpurgatory_{name}", samples)


_THROTTLED = {
    Quota.PRODUCE: "produce", Quota.FETCH: "fetch", Quota.REQUEST: "request",
    Quota.MUTATION: "controllermutation",
}  # fmt: skip


def _throttle_families(throttle: Throttle) -> Iterator[Family]:
    """Throttle times of users and client ids as in Apache Kafka; the totals are ours."""
    waits = list(throttle.waits_ms())
    for quota, name in _THROTTLED.items():
        samples: list[Sample] = [
            ((("user", user), ("client_id", client_id)), round(ms, 3))
            for kind, user, client_id, ms in waits
            if kind is quota
        ]
        yield build_family(f"kafka_server_{name}_throttle_time", samples)
    for name, counts in (
        ("urteil_throttled_requests_total", throttle.throttled),
        ("urteil_throttled_ms_total", throttle.throttled_ms),
    ):
        sums: list[Sample] = [((("quota", quota),), count) for quota, count in counts.items()]
        yield build_family(name, sums)


def _logs(logs: Sequence[PartitionLog]) -> Iterator[Family]:
    labels: list[Labels] = [
        (("topic", log.topic), ("partition", str(log.partition))) for log in logs
    ]
    for name, value in (
        ("size", lambda log: log.size),
        ("numlogsegments", lambda log: len(log.segments)),
        ("logstartoffset", lambda log: log.log_start_offset),
        ("logendoffset", lambda log: log.log_end_offset),
    ):
        samples = ((where, value(log)) for where, log in zip(labels, logs, strict=True))
        yield build_family(f"kafka_log_log_{name}", samples)


def _directories(logs: LogManager) -> Iterator[Family]:
    prefix = "kafka_log_logmanager"
    yield build_single(f"{prefix}_offlinelogdirectorycount", len(logs.offline))
    samples: list[Sample] = [
        ((("logDirectory", str(path)),), int(path in logs.offline)) for path in logs.paths
    ]
    yield build_family(f"{prefix}_logdirectoryoffline", samples)
