"""The broker's metrics under Kafka's names, as the rules of the JMX exporter write them.

Source: the beans of Apache Kafka 3.9 (`ReplicaManager`, `KafkaController`, `BrokerTopicMetrics`,
`RequestMetrics`, `DelayedOperationPurgatory`, `UnifiedLog`) and `kafka-2_0_0.yml` of the exporter:
names in lower case, `...PerSec` a counter `..._total`, percentiles a label `quantile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.statuses import PartitionStatus
from urteil.broker.metrics.cleaner_metrics import cleaner_families
from urteil.broker.metrics.request_metrics import request_families
from urteil.broker.metrics.text_format import Family, Labels, Sample, counter, gauge, quantiles_ms
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
    about = "1 on the controller"
    yield gauge(f"{prefix}_activecontrollercount", about, int(controller.is_active))
    cluster = term.context if term is not None else ControllerContext(-1, 0, 0)
    for name, (about, value) in _cluster(cluster).items():
        yield gauge(f"{prefix}_{name}", about, value)
    stats = "kafka_controller_controllerstats"
    times = f"{stats}_leaderelectionrateandtimems"
    yield counter(f"{times}_count", "Elections because brokers came or went", elections.rounds)
    yield Family(times, "gauge", "What they took in ms", quantiles_ms(elections.recent))
    about = "Partitions given to a leader that was not in sync"
    yield counter(f"{stats}_uncleanleaderelections_total", about, elections.unclean)


def _cluster(context: ControllerContext) -> dict[str, tuple[str, int]]:
    tps = context.partitions()
    offline = imbalanced = 0
    for tp in tps:
        offline += context.statuses[tp] is PartitionStatus.OFFLINE
        state = context.states.get(tp)
        imbalanced += state is not None and state.leader != context.replicas(tp)[0]
    return {
        "offlinepartitionscount": ("Partitions without a leader", offline),
        "preferredreplicaimbalancecount": (
            "Partitions led by another than their first replica",
            imbalanced,
        ),
        "globaltopiccount": ("Topics", len(context.topics)),
        "globalpartitioncount": ("Partitions", len(context.statuses)),
        "topicstodeletecount": ("Topics that are being deleted", len(context.deleting)),
        "activebrokercount": ("Brokers that are registered", len(context.brokers)),
    }


# Partitions and topics of this broker.


def _replicas(replicas: ReplicaManager) -> Iterator[Family]:
    led = [one for one in replicas.partitions.values() if one.is_leader]
    isrs = [(len(one.isr.committed), one) for one in led]
    gauges = {
        "partitioncount": ("Partitions hosted", len(replicas.partitions)),
        "offlinereplicacount": ("Partitions in log directories that failed", len(replicas.offline)),
        "leadercount": ("Partitions led", len(led)),
        "underreplicatedpartitions": (
            "Partitions led with fewer replicas in sync than assigned",
            sum(size < one.replication_factor for size, one in isrs),
        ),
        "reassigningpartitions": (
            "Partitions led whose replicas are being replaced",
            sum(one.is_reassigning for one in led),
        ),
        "underminisrpartitioncount": (
            "Partitions led with fewer replicas in sync than acks=all needs",
            sum(size < one.effective_min_isr for size, one in isrs),
        ),
        "atminisrpartitioncount": (
            "Partitions led with just as many",
            sum(size == one.effective_min_isr for size, one in isrs),
        ),
    }
    for name, (about, value) in gauges.items():
        yield gauge(f"kafka_server_replicamanager_{name}", about, value)
    changes = replicas.proposals
    for name, about, count in (
        ("isrshrinks", "Smaller ISRs that the controller wrote", changes.shrinks),
        ("isrexpands", "Larger ISRs that the controller wrote", changes.expands),
        ("failedisrupdates", "ISRs that the controller refused", changes.refusals),
    ):
        yield counter(f"kafka_server_replicamanager_{name}_total", about, count)


def _topics(traffic: Traffic) -> Iterator[Family]:
    shown = [((), traffic.sums()), *(((("topic", name),), one) for name, one in
             list(traffic.topics.items()))]  # fmt: skip
    for name, field, about in (
        ("bytesin", "bytes_in", "Bytes of batches appended by leaders"),
        ("bytesout", "bytes_out", "Bytes of batches given to consumers"),
        ("messagesin", "messages_in", "Records appended by leaders"),
    ):
        samples: list[Sample] = [(labels, getattr(one, field)) for labels, one in shown]
        yield Family(f"kafka_server_brokertopicmetrics_{name}_total", "counter", about, samples)


def _purgatories(replicas: ReplicaManager) -> Iterator[Family]:
    waiting = replicas.purgatories.items()
    for name, field, about in (
        ("purgatorysize", "watched", "Partitions that waiting requests watch"),
        ("numdelayedoperations", "delayed", "Requests that wait"),
    ):
        samples: list[Sample] = [
            ((("delayedOperation", kind),), getattr(one, field)) for kind, one in waiting
        ]
        yield Family(f"kafka_server_delayedoperationpurgatory_{name}", "gauge", about, samples)


_HELD_UP = {
    Quota.PRODUCE: "produce", Quota.FETCH: "fetch", Quota.REQUEST: "request",
    Quota.MUTATION: "controllermutation",
}  # fmt: skip


def _throttle_families(throttle: Throttle) -> Iterator[Family]:
    """Throttle times of users and client ids as in Apache Kafka; the totals are ours."""
    waits = list(throttle.waits_ms())
    for quota, name in _HELD_UP.items():
        samples: list[Sample] = [
            ((("user", user), ("client_id", client_id)), round(ms, 3))
            for one, user, client_id, ms in waits
            if one is quota
        ]
        about = "For how long requests were held up lately, in ms on an average"
        yield Family(f"kafka_server_{name}_throttle_time", "gauge", about, samples)
    for name, about, counts in (
        ("urteil_throttled_requests_total", "Requests held up by a quota", throttle.throttled),
        ("urteil_throttled_ms_total", "For how long, in ms", throttle.throttled_ms),
    ):
        sums: list[Sample] = [((("quota", quota),), count) for quota, count in counts.items()]
        yield Family(name, "counter", about, sums)


def _logs(logs: Sequence[PartitionLog]) -> Iterator[Family]:
    labels: list[Labels] = [
        (("topic", one.topic), ("partition", str(one.partition))) for one in logs
    ]
    for name, about, value in (
        ("size", "Bytes of batches on disk", lambda one: one.size),
        ("numlogsegments", "Segments", lambda one: len(one.segments)),
        ("logstartoffset", "The first offset", lambda one: one.log_start_offset),
        ("logendoffset", "The offset after the last", lambda one: one.log_end_offset),
    ):
        samples = ((where, value(one)) for where, one in zip(labels, logs, strict=True))
        yield Family(f"kafka_log_log_{name}", "gauge", about, samples)


def _directories(logs: LogManager) -> Iterator[Family]:
    prefix = "kafka_log_logmanager"
    about = "Log directories that failed"
    yield gauge(f"{prefix}_offlinelogdirectorycount", about, len(logs.offline))
    samples: list[Sample] = [
        ((("logDirectory", str(path)),), int(path in logs.offline)) for path in logs.paths
    ]
    yield Family(f"{prefix}_logdirectoryoffline", "gauge", "1 for one that failed", samples)
