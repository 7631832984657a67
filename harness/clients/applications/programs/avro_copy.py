"""Avro by schema id: a writer and a reader with Confluent's serializers and a registry between.

    python -m urteil.harness.clients.applications.programs.avro_copy JOB.json

The writer wraps each record of the input in Avro, with an id that the registry assigned to its
schema. The schema gets an optional field more with every `EVOLVES_EVERY` records of a producer, and
after each new one the writer tries to register a schema that old records break. The reader decodes
with the schema of each record's id and writes the original key and value to the output. Both commit
offsets after their records were acknowledged: at least once. A registry that does not answer is
awaited. The files of observations are JSON lines, one `Observation` each.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec

from urteil.chaos.waiting import until
from urteil.harness.clients.payload import decode

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer
    from confluent_kafka.schema_registry import SchemaRegistryClient

READY = "subscribed"
BATCH, POLL_S = 100, 0.5
EVOLVES_EVERY = 150
CONFLICT, UNKNOWN = 409, 404
REQUEST_S = 5.0
ANSWER_S = 60.0
"""Seconds within which a killed registry answers again; after them a request is repeated anyway."""
JSON = {"Content-Type": "application/json"}
OBSERVATIONS = "observations.jsonl"
ID_BYTES = slice(1, 5)
"""The schema id in a record's value, behind a magic byte."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One process: it copies from `source` to `sink`."""

    role: Literal["writer", "reader"]
    run: str
    servers: str
    client: str
    group: str
    source: str
    sink: str
    registry: str
    folder: str


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the registry answered: `assigned` an id to the schema with this number of fields;
    `refused` or `accepted` an incompatible one; has no schema for an id (`unknown`)."""

    kind: Literal["assigned", "refused", "accepted", "unknown"]
    schema_id: int = 0
    fields: int = 0


def main(path: str) -> None:
    """Copy until SIGTERM."""
    from confluent_kafka import Consumer, Producer

    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    servers = {"bootstrap.servers": job.servers, "client.id": job.client}
    consumer = Consumer(
        servers
        | {
            "group.id": f"{job.group}-{job.role}",
            "session.timeout.ms": 6_000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(servers | {"enable.idempotence": True, "linger.ms": 5})
    convert = Writer(job).encode if job.role == "writer" else Reader(job).decode
    consumer.subscribe([job.source])
    print(READY, flush=True)
    while True:
        records = [record for record in consumer.consume(BATCH, POLL_S) if record.error() is None]
        copies = [(record.key(), convert(record)) for record in records]
        send(producer, job.sink, [copy for copy in copies if copy[1] is not None])
        if records:
            commit(consumer, records)


def send(producer: Producer, topic: str, copies: list[tuple[bytes | None, bytes | None]]) -> None:
    """Produce keys and values. Exits if one of them is not acknowledged."""
    failed: list[object] = []
    for key, value in copies:
        producer.produce(
            topic,
            value,
            key,
            on_delivery=lambda error, _message: failed.append(error) if error else None,
        )
    producer.flush()
    if failed:
        raise SystemExit(f"a record was not acknowledged: {failed[0]}")


def commit(consumer: Consumer, records: list[Message]) -> None:
    """Commit the offsets of the records. After a rebalance the commit is rejected, and the new
    owner repeats them."""
    from confluent_kafka import KafkaException

    try:
        for record in records:
            consumer.store_offsets(record)
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        print(f"not committed: {error}", flush=True)


class Writer:
    """Encodes records with the schema of their sequence number."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._client = open_registry(job)
        self._serializers: dict[int, Any] = {}

    def encode(self, record: Message) -> bytes | None:
        """The record's value in Avro, behind the id of its schema."""
        from confluent_kafka.serialization import MessageField, SerializationContext

        payload = decode(self._job.run, record.value(), record.key())
        fields = (payload.sequence or 0) // EVOLVES_EVERY
        context = SerializationContext(self._job.sink, MessageField.VALUE)
        while True:
            try:
                serialize = self._serializer(fields)
                value = serialize({"value": record.value()}, context)
                break
            except Exception as error:
                await_registry(self._job, error)
        assert isinstance(value, bytes)
        if fields not in self._serializers:
            self._serializers[fields] = serialize
            schema_id = int.from_bytes(value[ID_BYTES], "big")
            observe(self._job, Observation(kind="assigned", schema_id=schema_id, fields=fields))
            self._try_incompatible()
        return value

    def _serializer(self, fields: int) -> Any:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return self._serializers.get(fields) or AvroSerializer(self._client, schema_text(fields))

    def _try_incompatible(self) -> None:
        """Try to register a schema whose readers cannot read the records of the others."""
        schema = schema_text(0).replace('"bytes"', '"long"')
        url = f"{self._job.registry}/subjects/{self._job.sink}-value/versions"
        request = Request(url, msgspec.json.encode({"schema": schema}), JSON)
        while True:
            try:
                with urlopen(request, timeout=REQUEST_S) as response:
                    schema_id = msgspec.json.decode(response.read())["id"]
                return observe(self._job, Observation(kind="accepted", schema_id=schema_id))
            except HTTPError as error:
                if error.code == CONFLICT:
                    return observe(self._job, Observation(kind="refused"))
                await_registry(self._job, error)
            except OSError as error:
                await_registry(self._job, error)


class Reader:
    """Decodes records by the schemas of their ids."""

    def __init__(self, job: Job) -> None:
        from confluent_kafka.schema_registry.avro import AvroDeserializer

        self._job = job
        self._deserialize = AvroDeserializer(open_registry(job))

    def decode(self, record: Message) -> bytes | None:
        """The original value; None if the registry has no schema for the record's id."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError
        from confluent_kafka.serialization import MessageField, SerializationContext

        context = SerializationContext(self._job.source, MessageField.VALUE)
        value = record.value()
        assert value is not None
        while True:
            try:
                row = self._deserialize(value, context)
                assert isinstance(row, dict)
                return bytes(row["value"])
            except SchemaRegistryError as error:
                if error.http_status_code == UNKNOWN:
                    schema_id = int.from_bytes(value[ID_BYTES], "big")
                    observe(self._job, Observation(kind="unknown", schema_id=schema_id))
                    return None
                await_registry(self._job, error)
            except Exception as error:
                await_registry(self._job, error)


def open_registry(job: Job) -> SchemaRegistryClient:
    """A client of the registry. Each request ends after a while and is repeated by the caller."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient({"url": job.registry, "timeout": REQUEST_S, "max.retries": 0})


def await_registry(job: Job, error: Exception) -> None:
    """Log why a request failed, and wait until the registry answers."""
    print(f"{type(error).__name__}: {error}", flush=True)
    until(lambda: answers(job.registry), deadline_s=ANSWER_S, poll_s=POLL_S)


def answers(registry: str) -> bool:
    """Whether the registry lists its subjects."""
    try:
        with urlopen(f"{registry}/subjects", timeout=REQUEST_S):
            return True
    except OSError:
        return False


def schema_text(fields: int) -> str:
    """The schema with so many optional fields."""
    optional = [
        {"name": f"optional{number}", "type": ["null", "string"], "default": None}
        for number in range(fields)
    ]
    columns = [{"name": "value", "type": "bytes"}, *optional]
    schema = {"type": "record", "name": "Copy", "namespace": "urteil", "fields": columns}
    return msgspec.json.encode(schema).decode()


def observe(job: Job, observation: Observation) -> None:
    """Append the observation to the process's file, which survives its kill."""
    with (Path(job.folder) / OBSERVATIONS).open("ab") as file:
        file.write(msgspec.json.encode(observation) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
