"""kio's codec as an oracle: byte for byte, value for value, at every version it knows."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import io
from pathlib import Path
from typing import Any

import kio.schema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from tests.broker.wire.strategies import ALL_MESSAGES, encoded, messages, project, versions
from urteil.broker.wire.schema import Field, Message

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


SCHEMA = Path(kio.schema.__path__[0])


def kio_module(cls: type[Message], version: int) -> str | None:
    """The name of kio's module of one version; None where it has none (it follows Apache Kafka 4).

    It is looked up and not imported: a process imports the modules of its own tests alone.
    """
    name = cls.KEY.name.lower()
    kind = "request" if cls.__name__.endswith("Request") else "response"
    exists = (SCHEMA / name / f"v{version}" / f"{kind}.py").exists()
    return f"kio.schema.{name}.v{version}.{kind}" if exists else None


def kio_class(cls: type[Message], module: str) -> Any:
    return getattr(importlib.import_module(module), cls.__name__)


KNOWN = [
    (cls, version, theirs)
    for cls in ALL_MESSAGES
    for version in versions(cls)
    if (theirs := kio_module(cls, version)) is not None
]
BY_MESSAGE = {
    cls: [(version, theirs) for known, version, theirs in KNOWN if known is cls]
    for cls in ALL_MESSAGES
}
NEVER_MISSING = {
    "expiry_timestamp_ms",
    "issue_timestamp_ms",
    "max_timestamp_ms",
    "transaction_start_time_ms",
}
"""Dates that kio does not take for missing at -1."""


def kio_scalars(spec: Field) -> st.SearchStrategy[Any] | None:
    """kio turns some numbers into enums, durations and dates, which are narrower."""
    if "error_code" in spec.name:
        return st.integers(-1, 120).filter(lambda code: code != 0) | st.just(0)
    if spec.name in NEVER_MISSING:
        return st.integers(0, 1 << 40)
    if spec.element == "int64":
        return st.integers(-1, 1 << 40)
    if spec.element == "uuid":
        return st.uuids(version=4)
    return None


def same(spec: Field, ours: Any, theirs: Any) -> bool:
    if ours is None:
        return theirs is None
    if spec.is_array:
        pairs = zip(ours, theirs, strict=True)
        return all(same_item(spec, mine, other) for mine, other in pairs)
    return same_item(spec, ours, theirs)


def same_item(spec: Field, ours: Any, theirs: Any) -> bool:
    if spec.struct is not None:
        return same_struct(ours, theirs)
    if isinstance(theirs, enum.Enum):
        theirs = theirs.value
    elif isinstance(theirs, datetime.timedelta):
        theirs = theirs // datetime.timedelta(milliseconds=1)
    elif isinstance(theirs, datetime.datetime):
        theirs = (theirs - EPOCH) // datetime.timedelta(milliseconds=1)
    if theirs is None:
        return ours == -1 or (spec.element == "uuid" and ours.int == 0)
    return bool(ours == theirs)


def same_struct(ours: Any, theirs: Any) -> bool:
    names = {field.name.replace("_", "") for field in dataclasses.fields(theirs)}
    for spec in ours.FIELDS:
        name = spec.name.replace("_", "")
        name = name if name in names else name.removesuffix("ms")
        if name not in names:
            # Absent in this version; a field that kio calls otherwise shows in the count below.
            continue
        names.discard(name)
        attribute = next(
            field.name
            for field in dataclasses.fields(theirs)
            if field.name.replace("_", "") == name
        )
        if not same(spec, getattr(ours, spec.name), getattr(theirs, attribute)):
            return False
    assert not names, f"{type(ours).__name__} lacks {names}"
    return True


def test_kio_covers_most_messages() -> None:
    assert len(KNOWN) > 250


@pytest.mark.parametrize(
    "cls", [c for c in ALL_MESSAGES if BY_MESSAGE[c]], ids=lambda c: c.__name__
)
def test_codec_equals_kios(cls: type[Message]) -> None:
    classes = [(version, kio_class(cls, module)) for version, module in BY_MESSAGE[cls]]
    oracles = [(version, entity_reader(k), entity_writer(k)) for version, k in classes]

    @settings(max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(messages(cls, kio_scalars))
    def check(full: Any) -> None:
        for version, read, write in oracles:
            message = project(full, version)
            data = encoded(message, version)
            theirs, size = read(data, 0)
            assert size == len(data)
            assert same_struct(message, theirs), (message, theirs)
            buffer = io.BytesIO()
            write(buffer, theirs)
            assert buffer.getvalue() == data

    check()
