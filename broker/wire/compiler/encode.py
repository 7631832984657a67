"""Source of encoders: from a message to buffers. Large records are not copied."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from urteil.broker.wire import primitives
from urteil.broker.wire.compiler.source import FIXED, Source

if TYPE_CHECKING:
    from urteil.broker.wire.schema import Encoder, Field, Message, Struct

COPY_BELOW_BYTES = 1024
"""Smaller records are copied to their neighbours: a separate buffer costs more."""


def compile_encoder(message: type[Message], version: int) -> Encoder:
    """Compile a function `message -> buffers` with the contract of `Message.encode`."""
    return _Encoder(message, version).compile()


def _records_size(records: object) -> int:
    if records is None:
        return -1
    if isinstance(records, (bytes, bytearray, memoryview)):
        return len(records)
    assert isinstance(records, Sequence)
    return sum(map(len, records))


def _put_records(out: list[Any], cuts: list[int], records: Any) -> None:
    buffers = (records,) if isinstance(records, (bytes, bytearray, memoryview)) else records
    for buffer in buffers:
        if len(buffer) >= COPY_BELOW_BYTES:
            cuts.append(len(out))
        out.append(buffer)


def _finish(out: list[Any], cuts: list[int]) -> list[Any]:
    buffers = []
    start = 0
    for cut in cuts:
        if cut > start:
            buffers.append(b"".join(out[start:cut]))
        buffers.append(out[cut])
        start = cut + 1
    if start < len(out):
        buffers.append(b"".join(out[start:]))
    return buffers


class _Encoder:
    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.source = Source(message, version)
        self.add = "add"
        self.run: list[tuple[str, str]] = []

    def compile(self) -> Encoder:
        source = self.source
        source.namespace.update(
            uvarint=primitives.encode_uvarint,
            records_size=_records_size,
            put_records=_put_records,
            finish=_finish,
            pack=struct.pack,
        )
        with source.block("def encode(message):"):
            source.line("out = []")
            source.line("cuts = []")
            source.line("add = out.append")
            self.struct(self.message, "message")
            self.flush()
            source.line("return finish(out, cuts)")
        function: Encoder = source.build("encode")
        return function

    def struct(self, cls: type[Struct], variable: str) -> None:
        version = self.source.version
        tagged = []
        for spec in cls.FIELDS:
            if version not in spec.versions:
                continue
            if version in spec.tagged:
                tagged.append(spec)
            else:
                self.field(spec, f"{variable}.{spec.name}")
        if self.source.flexible:
            self.tag_section(sorted(tagged, key=lambda spec: spec.tag), variable)

    def field(self, spec: Field, expression: str) -> None:
        if spec.is_array:
            self.array(spec, expression)
        elif spec.is_struct:
            self.write_struct(spec, expression)
        else:
            self.value(spec, spec.element, expression)

    def write_struct(self, spec: Field, expression: str) -> None:
        """Write a struct. If it may be null, a byte precedes it that is negative for null."""
        assert spec.struct is not None
        if self.source.version not in spec.nullable:
            self.struct(spec.struct, expression)
            return
        self.run.append((f"-1 if {expression} is None else 1", "b"))
        self.flush()
        with self.source.block(f"if {expression} is not None:"):
            self.struct(spec.struct, expression)
            self.flush()

    def value(self, spec: Field, kind: str, expression: str) -> None:
        if kind in FIXED:
            suffix = ".bytes" if kind == "uuid" else ""
            self.run.append((f"{expression}{suffix}", FIXED[kind]))
        elif kind == "records":
            self.records(expression)
        else:
            self.text(spec, kind, expression)

    def text(self, spec: Field, kind: str, expression: str) -> None:
        source = self.source
        data, size = source.new_variable("data"), source.new_variable("size")
        convert = ".encode()" if kind == "string" else ""
        source.line(f"{data} = {expression}")
        if self.source.version in spec.nullable and not spec.is_array:
            with source.block(f"if {data} is None:"):
                source.line(f"{data}, {size} = b'', -1")
            with source.block("else:"):
                source.line(f"{data} = {data}{convert}")
                source.line(f"{size} = len({data})")
        else:
            source.line(f"{data} = {data}{convert}")
            source.line(f"{size} = len({data})")
        self.length(size, "h" if kind == "string" else "i")
        source.line(f"{self.add}({data})")

    def records(self, expression: str) -> None:
        source = self.source
        data, size = source.new_variable("data"), source.new_variable("size")
        source.line(f"{data} = {expression}")
        source.line(f"{size} = records_size({data})")
        self.length(size, "i")
        with source.block(f"if {size} > 0:"):
            source.line(f"put_records(out, cuts, {data})")

    def array(self, spec: Field, expression: str) -> None:
        source = self.source
        array, count = source.new_variable("array"), source.new_variable("count")
        source.line(f"{array} = {expression}")
        if source.version in spec.nullable:
            source.line(f"{count} = -1 if {array} is None else len({array})")
        else:
            source.line(f"{count} = len({array})")
        self.length(count, "i")
        with source.block(f"if {count} > 0:"):
            self.elements(spec, array, count)

    def elements(self, spec: Field, array: str, count: str) -> None:
        source = self.source
        form = FIXED.get(spec.element)
        if form and spec.element != "uuid":
            source.line(f'{self.add}(pack(f">{{{count}}}{form}", *{array}))')
            return
        item = source.new_variable("item")
        with source.block(f"for {item} in {array}:"):
            if spec.is_struct:
                assert spec.struct is not None
                self.struct(spec.struct, item)
            else:
                self.value(spec, spec.element, item)
            self.flush()

    def length(self, size: str, form: str) -> None:
        if self.source.flexible:
            self.flush()
            self.source.line(f"{self.add}(uvarint({size} + 1))")
        else:
            self.run.append((size, form))
            self.flush()

    def tag_section(self, tagged: list[Field], variable: str) -> None:
        """Write the tagged fields that differ from their default."""
        source = self.source
        if not tagged:
            self.run.append(("0", "B"))
            return
        self.flush()
        payloads = source.new_variable("payloads")
        source.line(f"{payloads} = []")
        for spec in tagged:
            expression = f"{variable}.{spec.name}"
            default = source.constant("default", spec.make_default())
            with source.block(f"if {expression} is not {default} and {expression} != {default}:"):
                if spec.is_array:
                    # An empty list is a default, too, though unequal to the default tuple.
                    with source.block(f"if len({expression}):"):
                        self.payload(spec, expression, payloads)
                else:
                    self.payload(spec, expression, payloads)
        source.line(f"{self.add}(uvarint(len({payloads})))")
        with source.block(f"for tag, payload in {payloads}:"):
            source.line(f"{self.add}(uvarint(tag) + uvarint(len(payload)))")
            source.line(f"{self.add}(payload)")

    def payload(self, spec: Field, expression: str, payloads: str) -> None:
        outer, self.add = self.add, self.source.new_variable("add")
        buffers = self.source.new_variable("parts")
        self.source.line(f"{buffers} = []")
        self.source.line(f"{self.add} = {buffers}.append")
        self.field(spec, expression)
        self.flush()
        self.source.line(f'{payloads}.append(({spec.tag}, b"".join({buffers})))')
        self.add = outer

    def flush(self) -> None:
        """Write the fixed fields collected so far with one pack."""
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(form for _, form in self.run))
        pack = self.source.constant("pack", layout.pack)
        values = ", ".join(expression for expression, _ in self.run)
        self.source.line(f"{self.add}({pack}({values}))")
        self.run = []
