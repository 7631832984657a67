"""Bytes and values of Apache Kafka 3.9.1 for messages that no Python oracle knows.

`kafka_3_9_1.jsonl` was written by its own classes: the bytes it serialises a message to, and the
JSON its converters make of the same object.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.broker.wire.strategies import encoded
from urteil.broker.wire import messages
from urteil.broker.wire.schema import Field, Struct

VECTORS = [
    json.loads(line)
    for line in Path(__file__).with_name("kafka_3_9_1.jsonl").read_text().splitlines()
]


def check(ours: Struct, theirs: dict[str, Any], version: int) -> None:
    values = {name.lower(): value for name, value in theirs.items()}
    for spec in ours.FIELDS:
        value = getattr(ours, spec.name)
        key = spec.name.replace("_", "")
        if spec.element == "records":
            # Their JSON has no records, at most their size; the bytes are compared below.
            assert values.pop(f"{key}sizeinbytes", len(value or b"")) == len(value or b"")
            values.pop(key, None)
        elif key in values:
            check_field(spec, value, values.pop(key), version)
        else:
            assert value == spec.make_default()
    assert not values


def check_field(spec: Field, ours: Any, theirs: Any, version: int) -> None:
    if spec.is_array and ours is not None:
        for mine, other in zip(ours, theirs, strict=True):
            check_value(spec, mine, other, version)
    else:
        check_value(spec, ours, theirs, version)


def check_value(spec: Field, ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, Struct):
        check(ours, theirs, version)
    elif isinstance(ours, UUID):
        assert ours.bytes == base64.urlsafe_b64decode(theirs + "==")
    elif isinstance(ours, bytes):
        assert ours == base64.b64decode(theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['message']}-{v['version']}")
def test_bytes_and_values_equal_kafkas(vector: dict[str, Any]) -> None:
    cls = getattr(messages, vector["message"])
    data = bytes.fromhex(vector["hex"])
    message, pos = cls.decode(vector["version"], data)
    assert pos == len(data)
    check(message, vector["value"], vector["version"])
    assert encoded(message, vector["version"]) == data
