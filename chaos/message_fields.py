"""Fields and versions of Kafka's messages: a check of rules before a cluster starts.

`chaos/proxy/fields.json` lists the fields of the proxy's codec; the proxy prints it (`-fields`). A
path leads through messages and lists, `topics[].partitions[].partition`. Names are those of Kafka's
message definitions in snake case, or the codec's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from urteil.chaos.protocol_names import API_NAMES, APIS
from urteil.chaos.similar_names import suggest

CATALOGUE = Path(__file__).with_name("proxy") / "fields.json"
LIST = "[]"
Value = str | float | bool


@cache
def _catalogue() -> dict[str, Any]:
    catalogue: dict[str, Any] = json.loads(CATALOGUE.read_bytes())
    return catalogue


@cache
def _entries() -> dict[int, dict[str, Any]]:
    return {entry["key"]: entry for entry in _catalogue()["apis"].values()}


def _entry(api: str) -> dict[str, Any]:
    entry = _entries().get(APIS[api])
    if entry is None:
        raise ValueError(f"the proxy cannot read the messages of {api}")
    return entry


def check_versions(api: str, least: int, most: int) -> None:
    """ValueError unless the API has versions `least` and `most` (-1: the newest).

    The versions of an API that the proxy cannot read are unknown.
    """
    if APIS[api] not in _entries():
        return
    newest = int(_entry(api)["max_version"])
    if least > newest or most > newest:
        raise ValueError(f"{api} has no version {max(least, most)}; there are 0 to {newest}")


def field_type(api: str, direction: str, path: str) -> str:
    """The type of the field at the path: `int16`, `string`, `bool`, `uuid`, `bytes`, ... ValueError
    with the nearest names, and the existing ones, for a path that the message has at no version."""
    fields: Any = _entry(api)[direction]
    where = f"{api} {direction}"
    for step in path.split("."):
        if isinstance(fields, str):
            raise ValueError(f"path {path!r}: {where} is not a message, it has no {step!r}")
        name = _find(fields, step)
        if name is None:
            raise ValueError(f"path {path!r}: {where} has no field {step!r}; {_hint(fields, step)}")
        if name.endswith(LIST) != step.endswith(LIST):
            kind = "a list" if name.endswith(LIST) else "no list"
            raise ValueError(f"path {path!r}: write {name}, it is {kind}")
        fields, where = fields[name], name
    if not isinstance(fields, str):
        raise ValueError(f"path {path!r} is a message: add one of its fields, {_names(fields)}")
    return fields


def has_error_code(api: str) -> bool:
    """Whether answers of the API have an error code anywhere."""

    def contains(fields: Any) -> bool:
        return isinstance(fields, dict) and (
            "error_code" in fields or any(map(contains, fields.values()))
        )

    return contains(_entry(api)["answer"])


def typed_value(api: str, direction: str, path: str, value: Value) -> Value:
    """The value in the type of its field; numbers and booleans may be texts. ValueError for a value
    that the field cannot have."""
    kind = field_type(api, direction, path)
    if kind in ("string", "uuid", "bytes"):
        return str(value)
    if kind == "bool":
        if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        raise ValueError(f"{path} is true or false, not {value!r}")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{path} is a number ({kind}), not {value!r}") from None
    if kind.startswith("float"):
        return number
    bits = int(kind.lstrip("uint"))
    least, most = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not number.is_integer() or not least <= number <= most:
        raise ValueError(f"{path} is a whole number from {least} to {most} ({kind}), not {value}")
    return int(number)


def kafka_name(codec_name: str) -> str:
    """Kafka's name of an API; the proxy's has other capitals."""
    entry = _catalogue()["apis"].get(codec_name)
    return API_NAMES[entry["key"]] if entry else codec_name


def _plain(name: str) -> str:
    return name.removesuffix(LIST).replace("_", "").lower()


def _find(fields: Mapping[str, Any], step: str) -> str | None:
    """The codec's name of a field."""
    by_plain_name = {_plain(name): name for name in fields}
    further: list[str] = _catalogue()["further_names"].get(_plain(step), [])
    candidates = [_plain(step), *further]
    return next(
        (by_plain_name[candidate] for candidate in candidates if candidate in by_plain_name), None
    )


def _hint(fields: Mapping[str, Any], step: str) -> str:
    return suggest(step, sorted(fields)) if fields else "it has none"


def _names(fields: Mapping[str, Any]) -> str:
    return ", ".join(sorted(fields))
