"""Declarations of evidence: the meaning of a table and a column, and the values that a column may
hold.

`schema` collects the declared tables. The Arrow schemas, the validation
(`harness/verify/validation`), the imports and docs/reference/evidence.md are derived from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from urteil.harness.evidence.limits import COUNT_END, FOREVER_NS

Row = dict[str, Any]

LISTS = frozenset({"elected", "offsets", "low_watermarks"})
"""Members of an administrative act's object that are objects by partition."""


@dataclass(frozen=True, slots=True)
class When:
    """The rows that need a column. `text` completes the sentence "must not be null ...".

    `sql` is a condition on a row `x`, for tables that engines read; `holds` its like for rows of
    small tables.
    """

    text: str
    sql: str = ""
    holds: Callable[[Row], bool] | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a column of JSON. `text` completes the sentence "is not ..."."""

    text: str
    fits: Callable[[Any], bool]
    or_name: bool = False
    """Whether a plain name may replace JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table. Unless the fields say otherwise, null means: unknown or none.

    Numbers out of bounds, unknown words and missing values of required columns put the table in
    doubt. No number reaches the extremes of its type.
    """

    name: str
    type: pa.DataType
    meaning: str
    required: bool | When = False
    """A null puts the table in doubt."""
    identifies: bool | When = False
    """Rows of small tables without a value are reported and left out."""
    uniform: bool = False
    """Null in every row of a part, or in none."""
    may_be_missing: bool = False
    """A part may lack the column: other columns imply it, or no check depends on it alone."""
    least: int | None = None
    most: int | None = None
    is_free: bool = False
    """Any value is possible: clients choose it, or count around the end of its type."""
    words: frozenset[str] = frozenset()
    """All permitted words; empty for free text."""
    form: Form | None = None
    not_before: tuple[str, ...] = ()
    """Columns whose times this column's may not precede."""
    is_duration: bool = False
    """A length of time in nanoseconds, not a moment."""
    import_needs: bool = False
    """An imported history must have the column. It has other columns only if it recorded them."""
    import_default: Any = None
    """The value in an imported history without the column, if not null."""

    @property
    def is_time(self) -> bool:
        """Whether its values are moments: nanoseconds of CLOCK_MONOTONIC."""
        return self.name.endswith("_ns") and not self.is_duration

    @property
    def limits(self) -> tuple[int, int] | None:
        """The minimum and the maximum; None if any value is possible."""
        if self.is_free or not pa.types.is_integer(self.type):
            return None
        extreme = (1 << (self.type.bit_width - 1)) - 1
        least = 1 - extreme if self.least is None else self.least
        most = FOREVER_NS - 1 if self.is_time else extreme - 1
        return least, most if self.most is None else self.most

    def but(self, **changes: Any) -> Column:
        """A copy of the column with changed fields."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows of `table` to which other rows refer by equal `columns`.

    `text` describes the object of the reference. `is_optional`: a row with null in the last column
    has no reference. `is_damage`: a reference to a row that does not exist puts `table` in doubt.
    """

    table: str
    columns: tuple[str, ...]
    text: str
    is_optional: bool = False
    is_damage: bool = False


@dataclass(frozen=True, slots=True)
class CallOrder:
    """Within equal `columns`, later calls by `count` never have earlier times in `at_ns`."""

    columns: tuple[str, ...]
    count: str
    at_ns: str

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, self.count, self.at_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of evidence."""

    name: str
    row: str
    """The meaning of one row, as a noun in messages."""
    meaning: str
    columns: tuple[Column, ...]
    in_every_run: bool = False
    """A run without rows of it cannot pass."""
    is_written_live: bool = False
    """The lab writes its parts during the run; collection keeps them."""
    references: tuple[Reference, ...] = ()
    calls: CallOrder | None = None

    def led_by(self, column: Column) -> Table:
        """The table with one more column in front."""
        return replace(self, columns=(column, *self.columns))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def lacks_required(self, alias: str) -> str:
        """SQL: whether a row lacks a value that is required under a condition."""
        lacks = []
        for column in self.columns:
            if isinstance(column.required, When):
                cell = f"{alias}.{column.name}"
                is_text = pa.types.is_string(column.type)
                is_missing = f"COALESCE({cell}, '') = ''" if is_text else f"{cell} IS NULL"
                condition = re.sub(r"\bx\.", f"{alias}.", column.required.sql)
                lacks.append(f"({is_missing} AND {condition})")
        return " OR ".join(lacks)


def text(name: str, meaning: str, **fields: Any) -> Column:
    return Column(name=name, type=pa.string(), meaning=meaning, **fields)


def int32(name: str, meaning: str, **fields: Any) -> Column:
    return Column(name=name, type=pa.int32(), meaning=meaning, **fields)


def int64(name: str, meaning: str, **fields: Any) -> Column:
    return Column(name=name, type=pa.int64(), meaning=meaning, **fields)


def flag(name: str, meaning: str, **fields: Any) -> Column:
    """A boolean column; null is false."""
    return Column(name=name, type=pa.bool_(), meaning=meaning, **fields)


def float64(name: str, meaning: str, **fields: Any) -> Column:
    return Column(name=name, type=pa.float64(), meaning=meaning, **fields)


def _is_brokers(value: Any) -> bool:
    return isinstance(value, list) and all(type(broker) is int for broker in value)


def _is_replicas(value: Any) -> bool:
    if not isinstance(value, dict):
        return _is_brokers(value)
    return all(name.isdigit() and _is_brokers(brokers) for name, brokers in value.items())


def _is_epochs(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name.isdigit() and type(start) is int for name, start in value.items()
    )


def _is_harm(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("brokers", {}), dict):
        return False
    logs = list(value.get("brokers", {}).values())
    return (not logs or type(value.get("at_ns")) is int) and all(map(_is_ranges, logs))


def _is_ranges(logs: Any) -> bool:
    return isinstance(logs, dict) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(end is None or type(end) is int for end in pair)
        for pair in logs.values()
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name, {}), dict) for name in LISTS)


BROKERS = Form("a list of brokers", _is_brokers)
REPLICAS = Form("a list of brokers, or one for each partition", _is_replicas)
EPOCHS = Form("an object of epochs and their start offsets", _is_epochs)
HARM = Form('{"at_ns": t, "brokers": {"b1": {"topic-0": [low, high]}}}', _is_harm)
NAMES = Form("a name, or a list of names", lambda value: isinstance(value, list), or_name=True)
EFFECTS = Form("a list of effects", lambda value: isinstance(value, list))
OBJECT = Form("an object", _is_object)

COUNT = {"least": 0, "most": COUNT_END - 1}
OUTCOMES = frozenset({"ok", "fail", "info"})
ISOLATIONS = frozenset({"read_uncommitted", "read_committed"})

RUN = text("run", "Name of the run.", may_be_missing=True)
CLIENT = text("client", "Name of the client.")
SESSION = int32("session", "Number of the client's session, from 0.", least=0)
WHOSE = (CLIENT.but(required=True), SESSION.but(required=True))
TOPIC_ID = text("topic_id", "Kafka's id of the topic, in base64; a recreated topic has another.")
TOPIC = text("topic", "Name of the topic.", may_be_missing=True)
PARTITION = int32("partition", "Number of the partition.", least=0)
PLACE = (TOPIC_ID, TOPIC, PARTITION)
NEEDED_PLACE = (TOPIC_ID.but(required=True), TOPIC, PARTITION.but(required=True))
OFFSET = int64("offset", "Offset of the record.", least=-1)
KEY = text("key", "Key of the record; null without a key.")
VALUE_ID = text("value_id", "Identity of the record: `run/client/op`.")
TIMESTAMP = int64("timestamp_ms", "Timestamp of the record, by the wall clock.", is_free=True)
LEADER_EPOCH = int32("leader_epoch", "Leader epoch.", least=-1)
PRODUCER_ID = int64("producer_id", "Producer id; -1 without idempotence.", least=-1)
PRODUCER_EPOCH = int32("producer_epoch", "Producer epoch.", least=-1)
SEQUENCE = int32("sequence", "Sequence number of the record.", is_free=True)
TXN = int64("txn", "Number of the client's transaction; null outside one.", **COUNT)
OUTCOME = text(
    "outcome",
    "`ok`, `fail` (it certainly did not happen) or `info` (unknown).",
    words=OUTCOMES,
    required=True,
)
ERROR = text("error", "Error that the call returned.")
INVOKE_NS = int64("invoke_ns", "Time right before the call.", required=True)
COMPLETE_NS = int64(
    "complete_ns",
    "Time right after the call; null if it never returned.",
    not_before=("invoke_ns",),
)
GROUP = text("group", "Consumer group.")
GENERATION = int32("generation", "Generation of the group; -1 outside one.", least=-1)
MEMBER_EPOCH = int32(
    "member_epoch",
    "Epoch of the member in a group of the protocol `consumer` (KIP-848).",
    least=0,
    may_be_missing=True,
)
MEMBER = text("member_id", "The group's id of the member.")
ISOLATION = text("isolation", "`read_uncommitted` or `read_committed`.", words=ISOLATIONS)
BROKER = int32("broker", "Id of the broker.", least=0)
ACKS = int32("acks", "The client's setting `acks`: -1 (all), 0 or 1.", least=-1, most=1)
IDEMPOTENT = flag("idempotent", "Whether the producer is idempotent.")
