"""Message schemas: frozen dataclasses whose fields declare wire type and versions.

A field is declared as in Kafka's message definitions, `name: type = field("int32", "0+")`. The
decorators `request`, `response` and `struct` turn the class into a dataclass. Its methods come from
`Struct`: compiling them for some 200 classes would take a fifth of a broker's start. `__init__` is
compiled at the first call of the class, the codec of a version at the first use of that version
(`compiler`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.primitives import ZERO_UUID, Buffer, WireError

NEVER = 1 << 15

Records = bytes | bytearray | memoryview | Sequence[bytes | memoryview]
"""Record batches: one buffer when decoded, one or several when encoded."""

_DEFAULTS: dict[str, object] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": ZERO_UUID,
    "float64": 0.0,
}


class Versions:
    """A closed range of versions, written `0-4`, `3+`, `2` or `none`."""

    __slots__ = ("first", "last")

    def __init__(self, text: str) -> None:
        if text == "none":
            self.first, self.last = NEVER, -1
        elif text.endswith("+"):
            self.first, self.last = int(text[:-1]), NEVER
        else:
            first, _, last = text.partition("-")
            self.first, self.last = int(first), int(last or first)

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


class Field:
    """One line of a field table. `struct` is set once its message is complete."""

    __slots__ = (
        "default",
        "element",
        "is_array",
        "name",
        "nullable",
        "struct",
        "tag",
        "tagged",
        "versions",
    )

    def __init__(
        self, kind: str, versions: str, nullable: str, default: object, tag: int, tagged: str
    ) -> None:
        self.name = ""
        self.is_array = kind.startswith("[]")
        self.element = kind.removeprefix("[]")
        self.versions = Versions(versions)
        self.nullable = Versions(nullable)
        self.default = default
        self.tag = tag
        self.tagged = Versions(tagged)
        self.struct: type[Struct] | None = None

    @property
    def is_struct(self) -> bool:
        """Structs alone have capitalised type names."""
        return self.element[0].isupper()

    def make_default(self) -> object:
        """The value of an omitted field, and of one that the version does not have."""
        if self.default is _UNSET:
            self.default = self._zero()
        return self.default

    def _zero(self) -> object:
        if self.is_array:
            return ()
        if self.is_struct:
            assert self.struct is not None
            return self.struct()
        return _DEFAULTS.get(self.element, 0)


_UNSET = object()


def field(
    kind: str,
    versions: str,
    *,
    nullable: str = "none",
    default: object = _UNSET,
    tag: int = -1,
    tagged: str = "none",
) -> Any:
    """Declare a field: wire type (`[]` before it for an array), versions that carry it.

    `nullable` are the versions in which the field may be null, `tagged` those in which it is a
    tagged field with the number `tag`.
    """
    spec = Field(kind, versions, nullable, default, tag, tagged)
    return dataclasses.field(default_factory=spec.make_default, metadata={"wire": spec})


class Struct:
    """A nested part of a message; `FIELDS` is its table in wire order."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]]

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        cls.__init__ = _plain_init(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, spec.name) for spec in self.FIELDS])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{spec.name}={getattr(self, spec.name)!r}" for spec in self.FIELDS)
        return f"{type(self).__qualname__}({shown})"


def _refuse_change(self: Struct, name: str, *_value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


Decoder = Callable[[Buffer, int], tuple[Any, int]]
Encoder = Callable[[Any], list[bytes | memoryview]]


class Message(Struct):
    """A request or response body. Frozen; all fields have Kafka's defaults."""

    __slots__ = ()
    KEY: ClassVar[ApiKey]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]
    DECODERS: ClassVar[dict[int, Decoder]]
    ENCODERS: ClassVar[dict[int, Encoder]]

    @classmethod
    def decode(cls, version: int, data: Buffer, pos: int = 0) -> tuple[Self, int]:
        """Read a body of `version` from `data` at `pos`; return it and the position after it.

        Records stay views of `data`. Raises WireError for a truncated body, a wrong length or a
        null in a field that is not nullable. Bytes after the body are not checked.
        """
        decoder = cls.DECODERS.get(version) or cls._compiled_encoder("decoder", version)
        result: tuple[Self, int] = decoder(data, pos)
        return result

    def encode(self, version: int) -> list[bytes | memoryview]:
        """The body as consecutive buffers; large records are not copied.

        Fields that `version` does not have are omitted, whatever their value.
        """
        encoder = self.ENCODERS.get(version) or self._compiled_encoder("encoder", version)
        result: list[bytes | memoryview] = encoder(self)
        return result

    @classmethod
    def _compiled_encoder(cls, what: str, version: int) -> Any:
        from urteil.broker.wire.compiler import compile_decoder, compile_encoder

        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise WireError(f"{cls.__name__} has no version {version}")
        if what == "decoder":
            return cls.DECODERS.setdefault(version, compile_decoder(cls, version))
        return cls.ENCODERS.setdefault(version, compile_encoder(cls, version))


S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)

REQUESTS: dict[int, type[Message]] = {}
RESPONSES: dict[int, type[Message]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
def struct(cls: type[S]) -> type[S]:
    """Make a nested struct a frozen dataclass with its field table."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise dataclasses compute its signature
    make = dataclasses.dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)
    made = make(cls)
    table = []
    for entry in dataclasses.fields(made):  # type: ignore[arg-type]
        spec: Field = entry.metadata["wire"]
        spec.name = entry.name
        table.append(spec)
    made.FIELDS = tuple(table)
    made.__setattr__ = made.__delattr__ = _refuse_change  # type: ignore[method-assign,assignment]
    return made


def _plain_init(cls: type[Struct]) -> Any:
    """An `__init__` three times as fast as that of a frozen dataclass.

    The standard one calls `object.__setattr__` and a factory for each default. This one calls the
    setters of the slots and uses constants, since every default is immutable.
    """
    namespace: dict[str, Any] = {"UNSET": _UNSET}
    parameters, lines = [], []
    for spec in cls.FIELDS:
        default = f"default_{spec.name}"
        namespace[f"set_{spec.name}"] = cls.__dict__[spec.name].__set__
        if spec.is_struct and not spec.is_array and spec.default is _UNSET:
            # Its class may not be complete yet.
            namespace[default] = spec.make_default
            parameters.append(f"{spec.name}=UNSET")
            lines.append(f"    if {spec.name} is UNSET: {spec.name} = {default}()")
        else:
            namespace[default] = spec.make_default()
            parameters.append(f"{spec.name}={default}")
        lines.append(f"    set_{spec.name}(self, {spec.name})")
    head = f"def __init__(self, {', '.join(['*', *parameters]) if parameters else ''}):"
    exec("\n".join([head, *(lines or ["    pass"])]), namespace)
    return namespace["__init__"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
def request(key: ApiKey, versions: str, *, flexible: str) -> Callable[[type[M]], type[M]]:
    """Make a class the request body of `key`."""
    return _message(REQUESTS, key, versions, flexible)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def response(key: ApiKey, versions: str, *, flexible: str) -> Callable[[type[M]], type[M]]:
    """Make a class the response body of `key`."""
    return _message(RESPONSES, key, versions, flexible)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def record(versions: str, *, flexible: str = "none") -> Callable[[type[M]], type[M]]:
    """Make a class a key or value of an internal topic: no API key."""
    return _message(None, None, versions, flexible)


def _message(
    registry: dict[int, type[Message]] | None, key: ApiKey | None, versions: str, flexible: str
) -> Callable[[type[M]], type[M]]:
    def decorate(cls: type[M]) -> type[M]:
        made = struct(cls)
        served = Versions(versions)
        made.MIN_VERSION, made.MAX_VERSION = served.first, served.last
        made.FLEXIBLE_FROM = Versions(flexible).first
        made.DECODERS, made.ENCODERS = {}, {}
        _resolve(made, made)
        if registry is not None and key is not None:
            made.KEY = key
            registry[key] = made
        return made

    return decorate


def _resolve(message: type[Message], owner: type[Struct]) -> None:
    for spec in owner.FIELDS:
        if spec.is_struct and spec.struct is None:
            spec.struct = getattr(message, spec.element)
            _resolve(message, spec.struct)
