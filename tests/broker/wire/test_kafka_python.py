"""kafka-python's codec as a second oracle, for the versions it still speaks."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.wire.strategies import ALL_MESSAGES, encoded, messages, project, versions
from urteil.broker.wire.messages import ApiVersionsResponse
from urteil.broker.wire.schema import Field, Message, Struct

SETS_OF_BITS = "authorized_operations"
"""Fields that kafka-python shows under another name and as a set; their bytes are compared."""

FAMILIES = [
    importlib.import_module(f"kafka.protocol.{family}")
    for family in ("producer", "consumer", "metadata", "admin")
]


def their_class(cls: type[Message]) -> Any | None:
    classes = [getattr(family, cls.__name__, None) for family in FAMILIES]
    return next((theirs for theirs in classes if theirs is not None), None)


KNOWN = {cls: theirs for cls in ALL_MESSAGES if (theirs := their_class(cls)) is not None}


def first_version(cls: type[Message], theirs: Any) -> int:
    """Fields of versions that Apache Kafka 4 no longer has are gone from its definitions, too."""
    return max(cls.MIN_VERSION, int(theirs.valid_versions[0]))


def same(ours: Any, theirs: Any, version: int) -> bool:
    if isinstance(ours, Struct):
        return all(
            same(getattr(ours, spec.name), getattr(theirs, spec.name), version)
            for spec in ours.FIELDS
            if version in spec.versions and not spec.name.endswith(SETS_OF_BITS)
        )
    if isinstance(ours, tuple):
        pairs = zip(ours, theirs, strict=True)
        return all(same(mine, other, version) for mine, other in pairs)
    if isinstance(ours, bytes):
        return ours == bytes(theirs)
    return bool(ours == theirs)


def their_scalars(spec: Field) -> st.SearchStrategy[Any] | None:
    if spec.element == "records":
        return st.binary(min_size=1, max_size=3)
    return None


def test_kafka_python_covers_the_client_messages() -> None:
    assert len(KNOWN) >= 50


@pytest.mark.parametrize("cls", KNOWN, ids=lambda cls: cls.__name__)
def test_codec_equals_kafka_pythons(cls: type[Message]) -> None:
    theirs = KNOWN[cls]
    last = min(cls.MAX_VERSION, theirs.max_version)

    @settings(max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(messages(cls, their_scalars))
    def check(full: Any) -> None:
        if isinstance(full, ApiVersionsResponse):
            # Theirs takes every erroneous answer for one of version 0.
            full = dataclasses.replace(full, error_code=0)
        for version in versions(cls):
            if not first_version(cls, theirs) <= version <= last:
                continue
            message = project(full, version)
            data = encoded(message, version)
            decoded = theirs.decode(data, version=version)
            assert same(message, decoded, version), (version, message, decoded)
            decoded._header = None
            assert decoded.encode(version=version) == data

    check()
