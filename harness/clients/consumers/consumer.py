"""A live reader: an assigned consumer that follows every partition from its start.

python -m urteil.harness.clients.consumers.consumer SPEC.json
"""

from __future__ import annotations

from kafka import TopicPartition
from kafka.errors import KafkaError

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.consumers.journaling_consumer import JournalingConsumer
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import JournalWriter

RETRY_S = 0.1


def consume(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Follow all partitions until the stop is requested."""
    if spec.workload.client == "confluent-kafka":
        _consume_confluent(spec, journal, stop)
        return
    consumer = JournalingConsumer(spec, journal)
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
    from urteil.harness.clients.consumers.confluent_consumer import Reader

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


if __name__ == "__main__":
    run_client(consume)
