"""Source of decoders: from bytes to a frozen message. Every length is checked before its use."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from urteil.broker.wire import primitives
from urteil.broker.wire.compiler.source import FIXED, Source, builder

if TYPE_CHECKING:
    from urteil.broker.wire.schema import Decoder, Field, Message, Struct


def compile_decoder(message: type[Message], version: int) -> Decoder:
    """Compile a function `(data, pos) -> (message, pos)` with the contract of `Message.decode`."""
    return _Decoder(message, version).compile()


class _Decoder:
    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.source = Source(message, version)
        self.run: list[tuple[str, str]] = []
        self.after_run: list[str] = []

    def compile(self) -> Decoder:
        source = self.source
        source.namespace.update(
            WireError=primitives.WireError,
            read_uvarint=primitives.read_uvarint,
            read_length=primitives.read_length,
            skip_tags=primitives.skip_tags,
            uuid_from_bytes=primitives.uuid_from_bytes,
            unpack_from=struct.unpack_from,
            struct_error=struct.error,
        )
        with source.block("def decode(data, pos):"):
            source.line("end = len(data)")
            source.line("view = memoryview(data)")
            with source.block("try:"):
                result = self.struct(self.message)
                source.line(f"return {result}, pos")
            with source.block("except (IndexError, struct_error) as error:"):
                self.fail("truncated", cause="error")
            with source.block("except UnicodeDecodeError as error:"):
                self.fail("text that is not UTF-8", cause="error")
        function: Decoder = source.build("decode")
        return function

    def fail(self, what: str, cause: str = "") -> None:
        tail = f" from {cause}" if cause else ""
        self.source.line(f"raise WireError({f'{self.source.where}: {what}'!r}){tail}")

    def struct(self, cls: type[Struct]) -> str:
        """Read all fields of a struct; return the name of its variable."""
        version = self.source.version
        variables: list[str] = []
        tagged: list[tuple[Field, str]] = []
        for spec in cls.FIELDS:
            if version not in spec.versions:
                variables.append(self.source.constant("default", spec.make_default()))
            elif version in spec.tagged:
                variables.append(self.source.new_variable("tagged"))
                tagged.append((spec, variables[-1]))
            else:
                variables.append(self.field(spec))
        if self.source.flexible:
            self.tag_section(tagged)
        self.flush()
        result = self.source.new_variable("made")
        make = self.source.constant("make", builder(cls))
        self.source.line(f"{result} = {make}({', '.join(variables)})")
        self.source.line(f"{result}.__class__ = {self.source.constant('frozen', cls)}")
        return result

    def field(self, spec: Field) -> str:
        if spec.is_array:
            return self.array(spec)
        if spec.is_struct:
            return self.read_struct(spec)
        return self.value(spec, spec.element)

    def read_struct(self, spec: Field) -> str:
        """Read a struct. If it may be null, a byte precedes it that is negative for null."""
        assert spec.struct is not None
        if self.source.version not in spec.nullable:
            return self.struct(spec.struct)
        present, result = self.source.new_variable("present"), self.source.new_variable("value")
        self.run.append((present, "b"))
        self.flush()
        self.source.line(f"{result} = None")
        with self.source.block(f"if {present} >= 0:"):
            item = self.struct(spec.struct)
            self.source.line(f"{result} = {item}")
        return result

    def value(self, spec: Field, kind: str) -> str:
        variable = self.source.new_variable("value")
        if kind in FIXED:
            self.run.append((variable, FIXED[kind]))
            if kind == "uuid":
                self.after_run.append(f"{variable} = uuid_from_bytes({variable})")
            return variable
        size = self.length("h" if kind == "string" else "i")
        may_be_null = self.source.version in spec.nullable and not spec.is_array
        with self.source.block(f"if {size} < 0:"):
            if may_be_null:
                self.source.line(f"{variable} = None")
            else:
                self.fail(f"null {spec.name}")
        with self.source.block("else:"):
            self.source.line(f"stop = pos + {size}")
            with self.source.block("if stop > end:"):
                self.fail(f"{spec.name} longer than the data")
            self.source.line(f"{variable} = {_SLICES[kind]}")
            self.source.line("pos = stop")
        return variable

    def array(self, spec: Field) -> str:
        variable = self.source.new_variable("array")
        count = self.length("i")
        with self.source.block(f"if {count} < 0:"):
            if self.source.version in spec.nullable:
                self.source.line(f"{variable} = None")
            else:
                self.fail(f"null {spec.name}")
        with self.source.block(f"elif {count} > end - pos:"):
            self.fail(f"more {spec.name} than the data can hold")
        with self.source.block("else:"):
            self.elements(spec, variable, count)
        return variable

    def elements(self, spec: Field, variable: str, count: str) -> None:
        source = self.source
        form = FIXED.get(spec.element)
        if form and spec.element != "uuid":
            source.line(f'{variable} = unpack_from(f">{{{count}}}{form}", data, pos)')
            source.line(f"pos += {count} * {struct.calcsize('>' + form)}")
            return
        items = source.new_variable("items")
        source.line(f"{items} = []")
        with source.block(f"for _ in range({count}):"):
            if spec.is_struct:
                assert spec.struct is not None
                item = self.struct(spec.struct)
            else:
                item = self.value(spec, spec.element)
                self.flush()
            source.line(f"{items}.append({item})")
        source.line(f"{variable} = tuple({items})")

    def length(self, form: str) -> str:
        """Read a length or count with the fixed fields before it; negative means null."""
        size = self.source.new_variable("size")
        if self.source.flexible:
            self.small_uvarint(size, "read_length")
            with self.source.block("else:"):
                self.source.line(f"{size} -= 1")
        else:
            self.run.append((size, form))
            self.flush()
        return size

    def small_uvarint(self, variable: str, read: str = "read_uvarint") -> None:
        self.run.append((variable, "B"))
        self.flush()
        with self.source.block(f"if {variable} > 127:"):
            self.source.line(f"{variable}, pos = {read}(data, pos - 1)")

    def tag_section(self, tagged: list[tuple[Field, str]]) -> None:
        source = self.source
        count = source.new_variable("count")
        self.small_uvarint(count)
        for spec, variable in tagged:
            source.line(f"{variable} = {source.constant('default', spec.make_default())}")
        with source.block(f"if {count}:"):
            if not tagged:
                source.line(f"pos = skip_tags(data, pos, {count})")
                return
            with source.block(f"for _ in range({count}):"):
                self.tagged_field(tagged)

    def tagged_field(self, tagged: list[tuple[Field, str]]) -> None:
        source = self.source
        tag, limit = source.new_variable("tag"), source.new_variable("limit")
        source.line(f"{tag}, pos = read_uvarint(data, pos)")
        source.line(f"{limit}, pos = read_uvarint(data, pos)")
        source.line(f"{limit} += pos")
        for spec, variable in tagged:
            with source.block(f"if {tag} == {spec.tag}:"):
                read = self.field(spec)
                self.flush()
                source.line(f"{variable} = {read}")
                source.line("continue")
        with source.block(f"if not pos <= {limit} <= end:"):
            self.fail("tagged field longer than the data")
        source.line(f"pos = {limit}")

    def flush(self) -> None:
        """Read the fixed fields collected so far with one unpack."""
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(form for _, form in self.run))
        unpack = self.source.constant("unpack", layout.unpack_from)
        names = ", ".join(name for name, _ in self.run)
        self.source.line(f"{names}, = {unpack}(data, pos)")
        self.source.line(f"pos += {layout.size}")
        for line in self.after_run:
            self.source.line(line)
        self.run, self.after_run = [], []


_SLICES = {
    "string": f'str(data[pos:stop], "utf-8", {primitives.AS_JAVA!r})',
    "bytes": "bytes(data[pos:stop])",
    "records": "view[pos:stop]",
}
