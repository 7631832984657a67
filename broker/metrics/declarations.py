"""Every metric of the broker: name, kind, help and labels.

Names are those that Prometheus' JMX exporter gives the beans of Apache Kafka 3.9 by its common
rules (`kafka-2_0_0.yml`): in lower case, `...PerSec` is a counter `..._total`, percentiles are a
label `quantile`. `urteil_...` are metrics of our own. docs/reference/metrics.md lists this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `kind` is gauge or counter; `help` is its line `# HELP`."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


_CONTROLLER = "kafka_controller_kafkacontroller"
_STATISTICS = "kafka_controller_controllerstats"
_REPLICAS = "kafka_server_replicamanager"
_TOPICS = "kafka_server_brokertopicmetrics"
_REQUESTS = "kafka_network_requestmetrics"
_HANDLERS = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle"
_PURGATORY = "kafka_server_delayedoperationpurgatory"
_LOG = "kafka_log_log"
_DIRECTORIES = "kafka_log_logmanager"
_CLEANER_MANAGER = "kafka_log_logcleanermanager"
_CLEANER = "kafka_log_logcleaner"

_THROTTLE_HELP = "Mean recent delay of {} requests beyond their quota, in ms; only throttled ones"

SUBJECTS: dict[str, tuple[Metric, ...]] = {
    "Controller": (
        Metric(f"{_CONTROLLER}_activecontrollercount", "gauge", "1 on the controller, else 0"),
        Metric(f"{_CONTROLLER}_offlinepartitionscount", "gauge", "Partitions without a leader"),
        Metric(f"{_CONTROLLER}_preferredreplicaimbalancecount", "gauge",
               "Partitions whose leader is not their first replica"),
        Metric(f"{_CONTROLLER}_globaltopiccount", "gauge", "Topics of the cluster"),
        Metric(f"{_CONTROLLER}_globalpartitioncount", "gauge", "Partitions of the cluster"),
        Metric(f"{_CONTROLLER}_topicstodeletecount", "gauge", "Topics that are being deleted"),
        Metric(f"{_CONTROLLER}_activebrokercount", "gauge", "Registered brokers"),
        Metric(f"{_STATISTICS}_leaderelectionrateandtimems_count", "counter",
               "Rounds of elections because brokers came or went; not partitions"),
        Metric(f"{_STATISTICS}_leaderelectionrateandtimems", "gauge",
               "Duration of a round of elections, in ms", ("quantile",)),
        Metric(f"{_STATISTICS}_uncleanleaderelections_total", "counter",
               "Partitions that got a leader from outside the ISR"),
    ),
    "Partitions": (
        Metric(f"{_REPLICAS}_partitioncount", "gauge", "Partitions on this broker"),
        Metric(f"{_REPLICAS}_offlinereplicacount", "gauge",
               "Partitions in log directories that failed"),
        Metric(f"{_REPLICAS}_leadercount", "gauge", "Partitions that this broker leads"),
        Metric(f"{_REPLICAS}_underreplicatedpartitions", "gauge",
               "Led partitions with fewer replicas in sync than assigned; not those that a "
               "reassignment adds"),
        Metric(f"{_REPLICAS}_reassigningpartitions", "gauge",
               "Led partitions whose replicas are being replaced"),
        Metric(f"{_REPLICAS}_underminisrpartitioncount", "gauge",
               "Led partitions with fewer replicas in sync than acks=all needs"),
        Metric(f"{_REPLICAS}_atminisrpartitioncount", "gauge",
               "Led partitions with exactly as many replicas in sync as acks=all needs"),
        Metric(f"{_REPLICAS}_isrshrinks_total", "counter",
               "Smaller ISRs that this broker proposed and the controller wrote"),
        Metric(f"{_REPLICAS}_isrexpands_total", "counter",
               "Larger ISRs that this broker proposed and the controller wrote"),
        Metric(f"{_REPLICAS}_failedisrupdates_total", "counter",
               "ISRs that the controller rejected"),
    ),
    "Topics": (
        Metric(f"{_TOPICS}_bytesin_total", "counter",
               "Bytes of batches appended by leaders", ("topic",)),
        Metric(f"{_TOPICS}_bytesout_total", "counter",
               "Bytes of batches returned to consumers, not to followers", ("topic",)),
        Metric(f"{_TOPICS}_messagesin_total", "counter",
               "Records appended by leaders", ("topic",)),
    ),
    "Requests": (
        Metric(f"{_REQUESTS}_requests_total", "counter",
               "Answered requests; Fetch is FetchConsumer and FetchFollower together",
               ("request", "version")),
        Metric(f"{_REQUESTS}_requestqueuetimems", "gauge",
               "Time from arrival until a handler began, in ms", ("request", "quantile")),
        Metric(f"{_REQUESTS}_requestqueuetimems_count", "counter", "Timed requests", ("request",)),
        Metric(f"{_REQUESTS}_localtimems", "gauge",
               "Time in which the handler ran, in ms", ("request", "quantile")),
        Metric(f"{_REQUESTS}_localtimems_count", "counter", "Timed requests", ("request",)),
        Metric(f"{_REQUESTS}_remotetimems", "gauge",
               "Time of waiting for replicas, records, the group or the controller, in ms",
               ("request", "quantile")),
        Metric(f"{_REQUESTS}_remotetimems_count", "counter", "Timed requests", ("request",)),
        Metric(f"{_REQUESTS}_totaltimems", "gauge",
               "Time from arrival to the answer, in ms", ("request", "quantile")),
        Metric(f"{_REQUESTS}_totaltimems_count", "counter", "Timed requests", ("request",)),
        Metric(f"{_HANDLERS}_percent", "gauge",
               "Share (0 to 1) of the time since the start without a request in a handler"),
        Metric(f"{_HANDLERS}percent_count", "counter",
               "The same time in ns: rate(...[1m]) / 1e9 is the share in the last minute"),
        Metric(f"{_PURGATORY}_purgatorysize", "gauge",
               "Partitions that waiting Fetch, Produce or DeleteRecords requests watch",
               ("delayedOperation",)),
        Metric(f"{_PURGATORY}_numdelayedoperations", "gauge", "Waiting requests",
               ("delayedOperation",)),
    ),
    "Quotas": (
        *(
            Metric(f"kafka_server_{name}_throttle_time", "gauge", _THROTTLE_HELP.format(kind),
                   ("user", "client_id"))
            for name, kind in (("produce", "Produce"), ("fetch", "Fetch"), ("request", "all"),
                               ("controllermutation", "topic creation and deletion"))
        ),
        Metric("urteil_throttled_requests_total", "counter", "Requests that a quota delayed",
               ("quota",)),
        Metric("urteil_throttled_ms_total", "counter", "Sum of the delays, in ms", ("quota",)),
    ),
    "Logs": (
        Metric(f"{_LOG}_size", "gauge", "Bytes of batches on disk", ("topic", "partition")),
        Metric(f"{_LOG}_numlogsegments", "gauge", "Segments", ("topic", "partition")),
        Metric(f"{_LOG}_logstartoffset", "gauge", "First offset", ("topic", "partition")),
        Metric(f"{_LOG}_logendoffset", "gauge", "Offset after the last one",
               ("topic", "partition")),
        Metric(f"{_DIRECTORIES}_offlinelogdirectorycount", "gauge", "Log directories that failed"),
        Metric(f"{_DIRECTORIES}_logdirectoryoffline", "gauge",
               "1 for a log directory that failed, else 0", ("logDirectory",)),
    ),
    "Compaction": (
        Metric(f"{_CLEANER_MANAGER}_max_dirty_percent", "gauge",
               "Part of the dirtiest log that may be cleaned and is not"),
        Metric(f"{_CLEANER_MANAGER}_time_since_last_run_ms", "gauge",
               "Time since the last search for a log to clean"),
        Metric(f"{_CLEANER_MANAGER}_uncleanable_partitions_count", "gauge",
               "Damaged logs, which are not cleaned any more", ("logDirectory",)),
        Metric(f"{_CLEANER}_cleaner_recopy_percent", "gauge",
               "Part of the bytes read by the last cleaning that stayed"),
        Metric(f"{_CLEANER}_max_clean_time_secs", "gauge", "Duration of the last cleaning"),
        Metric(f"{_CLEANER}_max_buffer_utilization_percent", "gauge",
               "Used part of the last cleaning's map of keys"),
        Metric(f"{_CLEANER}_max_compaction_delay_secs", "gauge",
               "Time since max.compaction.lag.ms passed, of the log that waited longest"),
    ),
}  # fmt: skip
"""The metrics by subject, in the order of the page."""

METRICS: dict[str, Metric] = {
    metric.name: metric for metrics in SUBJECTS.values() for metric in metrics
}
"""Every metric by name."""
