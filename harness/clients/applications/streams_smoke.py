"""StreamsSmokeTest of Apache Kafka, which each of its releases must pass, as an application.

Its driver writes numbers to the topic `data`. Its clients, two instances of Kafka Streams, compute
minimum, maximum, sum, count, difference, average and windows of them, each into a topic of its own.
At the end the driver verifies them. The lab judges the driver's result, and computes minimum,
maximum, difference, sum and count again from what `data` finally holds.

The names of the topics are fixed in the test, so a cluster holds one run of it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.harness.clients.applications.declaration import (
    Application,
    AppProcess,
    Context,
)
from urteil.harness.clients.applications.result_topics import long, read_topic
from urteil.harness.clients.applications.streams_application import (
    STATE,
    StreamsOptions,
    java_command,
    leader,
    write_settings,
)
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.clients.promises import EXACTLY_ONCE
from urteil.harness.dependencies.streams import smoke_test_classpath
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario

PREFIX = "d"
DRIVER = f"{PREFIX}1"
INPUT = "data"
NUMBERS = ("max", "min", "dif")
LONGS = ("sum", "cnt")
TOPICS = (
    *(INPUT, "fk", "echo", *NUMBERS, *LONGS, "avg", "tagg"),
    *("min-raw", "min-suppressed", "sws-raw", "sws-suppressed"),
)
PARTITIONS, REPLICAS = 2, 3
KEYS, RECORDS, LOAD_S = 10, 400, 60
VERIFIED = "urteil: verified"
VERIFICATION = "verification"
RESULT = re.compile(r"SUCCESS|FAILURE")
DELIVERY = re.compile(r"ALL-RECORDS-DELIVERED|PROCESSED-(?:MORE|LESS)-THAN-GENERATED")

EXPECTED = f"""
SELECT '{VERIFICATION}' AS sink, 'result' AS key, 'SUCCESS' AS value, 'latest' AS mode, 1 AS due
UNION ALL SELECT '{VERIFICATION}', 'delivery', 'ALL-RECORDS-DELIVERED', 'latest', 1
UNION ALL SELECT c.sink, c.key, CAST(c.value AS STRING), 'latest', 1
FROM (SELECT s.sink, n.key, CASE s.sink WHEN 'max' THEN MAX(n.number) WHEN 'min' THEN MIN(n.number)
    WHEN 'dif' THEN MAX(n.number) - MIN(n.number) WHEN 'sum' THEN SUM(n.number)
    ELSE COUNT(*) END AS value
  FROM (SELECT o.key, TRY_CAST(o.value AS BIGINT) AS number FROM outputs o
    WHERE o.sink = '{INPUT}' AND o.key <> 'flush') n
  CROSS JOIN (SELECT 'max' AS sink UNION ALL SELECT 'min' UNION ALL SELECT 'dif'
    UNION ALL SELECT 'sum' UNION ALL SELECT 'cnt') s
  GROUP BY s.sink, n.key) c
"""


def _program(scenario: Scenario) -> str:
    return smoke_test_classpath(StreamsOptions.of(scenario.workload).streams_version)


@contextlib.contextmanager
def _topics(context: Context) -> Iterator[None]:
    """The topics of the test. LabFailure if one exists already."""
    from kafka.admin import KafkaAdminClient, NewTopic
    from kafka.errors import TopicAlreadyExistsError

    config = {"min.insync.replicas": "2"}
    admin = KafkaAdminClient(bootstrap_servers=list(context.bootstrap))
    try:
        admin.create_topics(
            [NewTopic(name, PARTITIONS, REPLICAS, topic_configs=config) for name in TOPICS]
        )
    except TopicAlreadyExistsError as error:
        raise LabFailure(
            f"StreamsSmokeTest needs a cluster without the topics {', '.join(TOPICS)}: {error}"
        ) from error
    finally:
        admin.close()
    yield


def _client(context: Context, process: str) -> list[str]:
    properties = write_settings(context, process)
    argv = java_command(context, process, _program(context.scenario))
    return [*argv, "org.apache.kafka.streams.tests.StreamsSmokeTest", str(properties), "process"]


def _driver(context: Context, name: str) -> list[str]:
    argv = [
        *java_command(context, name, _program(context.scenario)),
        "SmokeDriver",
        context.servers,
    ]
    return [*argv, str(KEYS), str(RECORDS), str(LOAD_S)]


def _describe_missing(context: Context, process: str) -> str:
    log = context.log(process)
    is_running = log.exists() and "REBALANCING -> RUNNING" in log.read_text(errors="replace")
    return "" if is_running else "its client has not reported RUNNING"


def _describe_remaining(context: Context) -> str:
    """The last line of the driver, as long as it has not verified."""
    lines = context.log(DRIVER).read_text(errors="replace").splitlines() or [""]
    return "" if lines[-1] == VERIFIED else f"the driver has not verified: {lines[-1]}"


def driver_result(log: Path) -> Iterator[Output]:
    """The rows of the driver's own verification."""
    text = log.read_text(errors="replace")
    for position, (key, words) in enumerate({"result": RESULT, "delivery": DELIVERY}.items()):
        matches = words.findall(text)
        yield Output(
            sink=VERIFICATION, position=position, key=key, value=matches[-1] if matches else "none"
        )


def number(value: bytes) -> str:
    """A number as Java's IntegerSerializer writes it."""
    return str(int.from_bytes(value, "big", signed=True))


def require_one_day(times_ms: Iterable[int]) -> None:
    """LabFailure if the records are of two days: the test's windows begin at midnight UTC, and its
    results would be of two windows."""
    days = {
        datetime.fromtimestamp(time / 1000, UTC).date() for time in times_ms if time is not None
    }
    if len(days) > 1:
        raise LabFailure("StreamsSmokeTest ran over midnight UTC, where its windows end: repeat it")


def _outputs(context: Context) -> Iterator[Output]:
    data = list(read_topic(context, INPUT, INPUT, value=number))
    require_one_day(row.timestamp_ms or 0 for row in data if row.key != "flush")
    yield from data
    yield from driver_result(context.log(DRIVER))
    for topic in (*NUMBERS, *LONGS):
        yield from read_topic(context, topic, topic, value=number if topic in NUMBERS else long)


APPLICATION = Application(
    name="streams-smoke",
    about="StreamsSmokeTest of Apache Kafka, judged by its own verification and by the lab's.",
    processes=(
        AppProcess(
            count=lambda scenario: ApplicationOptions.of(scenario.workload).apps,
            command=_client,
            missing=_describe_missing,
            stores=(STATE,),
        ),
        AppProcess(prefix=PREFIX, role="service", command=_driver, is_finite=True),
    ),
    promise=EXACTLY_ONCE,
    options=(StreamsOptions,),
    prepare=_program,
    surroundings=_topics,
    remaining=_describe_remaining,
    outputs=_outputs,
    expected=lambda _scenario: EXPECTED,
    leader=leader,
)
