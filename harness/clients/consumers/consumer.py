"""A live reader: an assigned consumer that follows every partition from its start.

    python -m urteil.harness.clients.consumers.consumer SPEC.json

It reads during the faults, so it shows what a consumer sees of a record that is lost or replaced
later, and whether it skips any. A lost position ends a pass, and another pass begins.
"""

from __future__ import annotations

from typing import Annotated, Any

from kafka import TopicPartition
from kafka.errors import KafkaError
from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.consumers.journaling_consumer import JournalingConsumer
from urteil.harness.clients.kind import Belongs, ClientKind, Stage
from urteil.harness.clients.libraries import CONFLUENT, KAFKA_PYTHON
from urteil.harness.clients.options import FetchOptions, LibraryOptions, WorkloadOptions
from urteil.harness.clients.spec import ClientSpec, consumer_config, fetch_limits
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import JournalWriter
from urteil.harness.racks import RACK
from urteil.harness.scenario import Scenario

RETRY_S = 0.1


class RackOptions(WorkloadOptions, frozen=True):
    """Options of live readers."""

    racks: Annotated[
        bool,
        Meta(
            description="Reader `c1` is in the rack of broker 1, and so on; it reads from the "
            "replica there while that is in sync (KIP-392)."
        ),
    ] = False


def reader_config(spec: ClientSpec) -> dict[str, Any]:
    """The settings of a live reader. With the option `racks` it is in the rack of the broker with
    its number."""
    config = consumer_config(spec) | fetch_limits(spec)
    if RackOptions.of(spec.workload).racks:
        config["client_rack"] = f"{RACK}{spec.number}"
    return config


def consume(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Follow all partitions until the stop is requested."""
    if spec.workload.client == CONFLUENT:
        _consume_confluent(spec, journal, stop)
        return
    consumer = JournalingConsumer(spec, journal, reader_config(spec))
    partitions = [TopicPartition(topic, partition) for topic, partition in spec.partitions()]
    consumer.assign(partitions)
    starts = _starts(consumer, partitions, stop)
    for partition, offset in starts.items():
        consumer.begin(partition, offset, None, final=False)
    while not stop.is_set():
        consumer.poll()
    for partition in consumer.open_passes():
        consumer.end(partition, complete=True)
    consumer.close()


def _consume_confluent(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    from urteil.harness.clients.libraries.confluent_consumer import Reader

    reader = Reader(spec, journal)
    reader.start(stop)
    while not stop.is_set():
        reader.step(stop)
    reader.close()


def _starts(
    consumer: JournalingConsumer, partitions: list[TopicPartition], stop: Stop
) -> dict[TopicPartition, int]:
    while not stop.is_set():
        try:
            return consumer.earliest(partitions)
        except KafkaError:
            stop.wait(RETRY_S)
    return {}


def _count(scenario: Scenario) -> int:
    load = scenario.workload
    return 0 if load.kind in ("group", "commits", "share") else load.consumers


KIND = ClientKind(
    name="consumer",
    about="Follows every partition from its start, and journals what it reads.",
    belongs=Belongs.IN_TURN,
    stage=Stage.READS,
    judged_by=("poll_skip", "vanished_read"),
    prefix="c",
    count=_count,
    work=consume,
    options=(LibraryOptions, FetchOptions, RackOptions),
    libraries=(KAFKA_PYTHON, CONFLUENT),
    may_be_old=True,
)

if __name__ == "__main__":
    run_client(KIND)
