"""Rules of links: which requests or answers are acted on, and how.

A link to a broker reads Kafka's frames (`chaos/proxy`). A rule selects frames by API, direction,
version, client id, fields of the message and the order in which they pass, and acts on them. Each
hit is reported by the proxy: the proof that the rule acted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from urteil.chaos.protocol_names import APIS, ERRORS, find_name

REQUEST, ANSWER = "request", "answer"
LINK_EVENTS = "link_events.jsonl"
"""The file of a run with the frames on which its faults acted."""
Value = str | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRule:
    """One rule, in the terms of the proxy (`chaos/proxy/rules.go`).

    `api` is Kafka's name, empty for every API. `occurrence` is the first matching frame that is
    hit, `times` the number of hits from there on, 0 for all. `fields` and, for answers,
    `request_fields` are values by path (`topics[].name`) that the message must have; texts may hold
    `*`. After a dropped frame nothing more passes on its connection in that direction, unless
    `goes_on`. `error` is the name of an error, `path` where it stands; empty: every error code.
    """

    direction: str
    act: str
    api: str = ""
    occurrence: int = 1
    times: int = 1
    min_version: int = 0
    max_version: int = -1
    client_id: str = ""
    fields: Mapping[str, Value] = field(default_factory=dict)
    request_fields: Mapping[str, Value] = field(default_factory=dict)
    delay_ms: int = 0
    error: str = ""
    path: str = ""
    value: Value | None = None
    truncated_bytes: int = 0
    goes_on: bool = False

    def __post_init__(self) -> None:
        if self.api:
            find_name("API", APIS, self.api)
        if self.error:
            find_name("error", ERRORS, self.error)

    def body(self, name: str, proxies: Sequence[str]) -> dict[str, Any]:
        """The rule as the proxy reads it."""
        return {
            "name": name,
            "links": list(proxies),
            "api": str(APIS[find_name("API", APIS, self.api)]) if self.api else "",
            "direction": self.direction,
            "min_version": self.min_version,
            "max_version": self.max_version,
            "client_id": self.client_id,
            "fields": dict(self.fields),
            "request_fields": dict(self.request_fields),
            "occurrence": self.occurrence,
            "times": self.times,
            "act": self.act,
            "delay_ms": self.delay_ms,
            "bytes": self.truncated_bytes,
            "error": ERRORS[find_name("error", ERRORS, self.error)] if self.error else 0,
            "path": self.path,
            "value": self.value,
            "goes_on": self.goes_on,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHit:
    """A frame on which a rule acted. `at_ns` is CLOCK_MONOTONIC."""

    at_ns: int
    link: str
    direction: str
    api: str
    version: int
    correlation_id: int
    client_id: str
    act: str
    occurrence: int
    detail: str = ""
    message: Any = None

    def row(self, fault: str) -> dict[str, Any]:
        """The row of the table `link_events`."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        row.pop("message")
        return {"fault": fault} | row

    def __str__(self) -> str:
        text = f"{self.act} {self.api} {self.version} {self.direction} {self.occurrence}"
        return f"{text} on {self.link}{f': {self.detail}' if self.detail else ''}"


def parse_fields(text: str) -> dict[str, Value]:
    """`path=value, path=value` as a mapping. Numbers and truths are read as such.

    ValueError for a part without `=`.
    """
    fields: dict[str, Value] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        path, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is no path=value")
        fields[path.strip()] = _value(value.strip())
    return fields


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        return text[1:-1]
    try:
        return float(text)
    except ValueError:
        return text
