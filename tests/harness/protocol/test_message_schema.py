"""Messages are decoded by Kafka's own definitions, whatever their version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.dependencies.kafka import kafka_jar
from urteil.harness.protocol.message_encoder import encode_message
from urteil.harness.protocol.message_schema import (
    FieldSchema,
    MessageSchema,
    UnreadableMessage,
    read_schemas,
)

BOUNDS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


@pytest.fixture(scope="module")
def schemas() -> dict[str, MessageSchema]:
    return read_schemas(kafka_jar("kafka-metadata"), "common/metadata")


def values(schema: FieldSchema, version: int) -> st.SearchStrategy:
    nullable = version in schema.nullable
    if schema.is_array:
        array = st.lists(element(schema, version), max_size=3)
        return st.none() | array if nullable else array
    return st.none() | element(schema, version) if nullable else element(schema, version)


def element(schema: FieldSchema, version: int) -> st.SearchStrategy:
    kind = schema.kind
    if kind in BOUNDS:
        return st.integers(-(1 << BOUNDS[kind]), (1 << BOUNDS[kind]) - 1)
    if kind in ("uint16", "uint32"):
        return st.integers(0, (1 << int(kind[4:])) - 1)
    if kind == "float64":
        return st.floats(allow_nan=False)
    if kind == "bool":
        return st.booleans()
    if kind == "uuid":
        return st.just("ABCDEFGHIJKLMNOPQRSTUQ")
    if kind == "string":
        return st.text(max_size=5)
    if kind in ("bytes", "records"):
        return st.binary(max_size=5)
    return message(schema.fields, version)


def message(fields: tuple[FieldSchema, ...], version: int) -> st.SearchStrategy:
    present = {field.name: values(field, version) for field in fields if version in field.versions}
    absent = {
        field.name: st.just(field.default) for field in fields if version not in field.versions
    }
    return st.fixed_dictionaries(present | absent)


def last_version(schema: MessageSchema) -> int:
    assert schema.valid.last is not None
    return schema.valid.last


@given(data=st.data())
def test_every_metadata_record_of_every_version_is_decoded_as_encoded(schemas, data) -> None:
    schema = data.draw(st.sampled_from(sorted(schemas.values(), key=lambda schema: schema.name)))
    version = data.draw(st.integers(0, last_version(schema)))
    fields = data.draw(message(schema.fields, version))
    assert schema.decode(encode_message(schema, version, **fields), version) == fields


def test_every_definition_of_the_release_is_readable() -> None:
    requests = read_schemas(kafka_jar("kafka-clients"), "common/message")
    assert {"ProduceRequest", "FetchResponse", "LeaderChangeMessage"} <= requests.keys()


def test_message_that_a_release_removed_has_no_version() -> None:
    removed = MessageSchema(
        '{"apiKey": 6, "name": "UpdateMetadataRequest", "validVersions": "none"}'
    )
    with pytest.raises(UnreadableMessage, match="UpdateMetadataRequest has no version 0"):
        removed.decode(b"", 0)


def test_cut_message_is_refused_with_its_name_and_version(schemas) -> None:
    schema = schemas["TopicRecord"]
    encoded = encode_message(schema, 0, Name="orders", TopicId="AAAAAAAAAAAAAAAAAAAAAQ")
    for size in range(len(encoded)):
        with pytest.raises(UnreadableMessage, match="TopicRecord version 0"):
            schema.decode(encoded[:size], 0)
    with pytest.raises(UnreadableMessage, match="1 bytes are left over"):
        schema.decode(encoded + b"\0", 0)


def test_version_beyond_the_release_is_refused(schemas) -> None:
    with pytest.raises(UnreadableMessage, match="TopicRecord has no version 9"):
        schemas["TopicRecord"].decode(b"", 9)


def test_unknown_tag_is_passed_over(schemas) -> None:
    schema = schemas["TopicRecord"]
    encoded = encode_message(schema, 0, Name="orders", TopicId="AAAAAAAAAAAAAAAAAAAAAQ")
    tagged = encoded[:-1] + b"\x01\x63\x02ab"
    assert schema.decode(tagged, 0) == schema.decode(encoded, 0)


def test_definitions_that_a_release_lacks_are_left_out() -> None:
    names = ("LeaderChangeMessage", "NoSuchRecord")
    assert read_schemas(kafka_jar("kafka-clients"), "common/message", names).keys() == {names[0]}
