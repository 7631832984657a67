"""The evidence tables of a run, as Arrow schemas: the contract between workload and verification.

docs/reference/evidence.md describes the rows. Times are CLOCK_MONOTONIC in ns. `topic_id` is
Kafka's base64 form. Null means: not known. Every part file of `evidence/<table>/` has these
columns.
"""

from __future__ import annotations

import pyarrow as pa

_TYPES = {
    "s": pa.string(),
    "i": pa.int32(),
    "l": pa.int64(),
    "b": pa.bool_(),
    "d": pa.float64(),
}

_TABLES = {
    "clients": "client:s session:i kind:s acks:i idempotent:b transactional_id:s group:s "
    "instance:s isolation:s library:s version:s boot_id:s pid:i begin_ns:l end_ns:l",
    "sends": "client:s session:i op:l invoke_ns:l complete_ns:l outcome:s error:s attempts:i "
    "ambiguous:b topic_id:s topic:s partition_intended:i partition:i offset:l node:i producer_id:l "
    "producer_epoch:i sequence:i key:s value_id:s timestamp_ms:l txn:l acks:i idempotent:b "
    "tombstone:b source:s",
    "reads": "client:s session:i pass:l poll:l position_in_poll:i read_ns:l generation:i "
    "topic_id:s topic:s partition:i offset:l key:s value_id:s intact:b leader_epoch:i "
    "timestamp_ms:l txn:l",
    "passes": "client:s session:i pass:l topic_id:s topic:s partition:i from_offset:l to_offset:l "
    "isolation:s begin_ns:l end_ns:l final:b complete:b leader:i",
    "polls": "client:s session:i poll:l invoke_ns:l complete_ns:l outcome:s error:s topic_id:s "
    "topic:s partition:i position_before:l position_after:l event:s",
    "txns": "client:s session:i txn:l transactional_id:s producer_id:l epoch:i begin_ns:l "
    "commit_invoke_ns:l end_ns:l outcome:s error:s init_invoke_ns:l init_ns:l late_end_ns:l",
    "commits": "client:s session:i group:s generation:i member_id:s invoke_ns:l complete_ns:l "
    "outcome:s error:s topic_id:s topic:s partition:i offset:l processed_to:l txn:l",
    "commit_reads": "client:s session:i group:s generation:i member_id:s invoke_ns:l complete_ns:l "
    "outcome:s error:s topic_id:s topic:s partition:i offset:l intact:b",
    "assignments": "client:s session:i group:s generation:i member_id:s at_ns:l event:s topic_id:s "
    "topic:s partition:i",
    "offset_answers": "node:i invoke_ns:l complete_ns:l api_version:i query:s topic_id:s topic:s "
    "partition:i offset:l leader_epoch:i timestamp_ms:l error:s",
    "accesses": "client:s session:i node:i subject:s invoke_ns:l complete_ns:l outcome:s error:s",
    "admin_ops": "invoke_ns:l complete_ns:l outcome:s act:s subject:s before:s after:s",
    "faults": "fault:s targets:s begin_ns:l end_ns:l healed_ns:l proof:s acted:b harm:s",
    "states": "zxid:l at_ns:l wall_ms:l path:s version:i topic_id:s topic:s partition:i leader:i "
    "leader_epoch:i controller:i controller_epoch:i isr:s replicas:s",
    "samples": "at_ns:l source:s metric:s labels:s value:d",
    "logs": "broker:i topic_id:s topic:s partition:i log_start:l log_end:l high_watermark:l "
    "recovery_point:l epochs:s active_base:l",
    "indexes": "broker:i topic_id:s topic:s partition:i segment_base:l kind:s entry:i offset:l "
    "position:l timestamp_ms:l producer_id:l there:s there_base:l there_last:l "
    "there_timestamp_ms:l before_timestamp_ms:l",
    "replicas": "broker:i topic_id:s topic:s partition:i segment_base:l batch_base:l batch_bytes:i "
    "batch_crc:l offset:l leader_epoch:i producer_id:l producer_epoch:i sequence:i key:s "
    "value_id:s intact:b control:s transactional:b timestamp_ms:l",
    "manifest": "file:s kind:s rows:l first_sequence:l last_sequence:l ended_properly:b",
}


def _schema(columns: str) -> pa.Schema:
    pairs = (column.split(":") for column in columns.split())
    return pa.schema([pa.field("run", pa.string())] + [pa.field(n, _TYPES[t]) for n, t in pairs])


SCHEMAS: dict[str, pa.Schema] = {name: _schema(columns) for name, columns in _TABLES.items()}
"""Table name to its Arrow schema. Lists (isr, replicas, targets, epochs, labels) are JSON strings.

`sends.acks` and `sends.idempotent` repeat the client's settings, since permission is a predicate
over the record. `sends.tombstone` says that the record had no value, so that it deletes its key;
reads and replicas are joined to it by value_id. `sends.source` is the value that a record was made
of in a read-process-write step.
`sends.op` is the client's sequence; `value_id` is `run/client/op`. `outcome` is
`ok`, `fail` or `info`. `passes.to_offset` is exclusive: the end that the pass had to reach, asked
of the leader before it; `passes.leader` is the broker that led while the pass read. `polls` has a
row for every partition whose position a poll touched. `logs.epochs` is a JSON object of epoch to
start offset. `replicas.control` is `commit`, `abort` or null.
"""
