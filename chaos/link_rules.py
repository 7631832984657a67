"""Rules of links: the selection of requests or answers, and the act on them.

A link to a broker reads Kafka's frames (`chaos/proxy`). A rule selects frames by API, direction,
version, client id, fields of the message and the order in which they pass, and acts on them. The
proxy reports each hit: the proof that the rule acted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from urteil.chaos.message_fields import (
    Value,
    check_versions,
    field_type,
    has_error_code,
    typed_value,
)
from urteil.chaos.protocol_names import API_NAMES, APIS, ERRORS, find_name

REQUEST, ANSWER, BOTH = "request", "answer", "both"
NEWEST = -1
LINK_EVENTS = "link_events.jsonl"
"""The file of a run with the frames on which its faults acted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRule:
    """One rule, in the terms of the proxy (`chaos/proxy/rules.go`).

    `api` is Kafka's name or the API's key, empty for every API. `occurrence` is the first matching
    frame that is hit, `times` the number of hits from there on, 0 for all, and `probability` that
    of each hit, from `seed`. `fields` of the message and `request_fields` of its request are
    required values by path (`topics[].name`); texts may contain `*`. After a dropped frame nothing
    more passes on its connection in that direction, unless `goes_on`; with it, later requests pass
    a held one, which then arrives on a connection of its own. `error` is the name of an error,
    `path` the field for it; empty: every error code. ValueError for a field or version that the API
    does not have.
    """

    direction: str
    act: str
    api: str = ""
    occurrence: int = 1
    times: int = 1
    min_version: int = 0
    max_version: int = NEWEST
    client_id: str = ""
    fields: Mapping[str, Value] = field(default_factory=dict)
    request_fields: Mapping[str, Value] = field(default_factory=dict)
    delay_ms: int = 0
    error: str = ""
    path: str = ""
    value: Value | None = None
    truncated_bytes: int = 0
    goes_on: bool = False
    probability: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.error:
            find_name("error", ERRORS, self.error)
        if self.api:
            check_versions(self._api, self.min_version, self.max_version)
        elif self.fields or self.request_fields or self.path:
            raise ValueError("a field is one of an API: name the api")
        self._typed_fields()
        if self.act == "error":
            self._check_error_path()

    @property
    def _api(self) -> str:
        if self.api.isdecimal() and int(self.api) < len(API_NAMES):
            return API_NAMES[int(self.api)]
        return find_name("API", APIS, self.api) if self.api else ""

    def _typed_fields(self) -> tuple[dict[str, Value], dict[str, Value], Value | None]:
        """`fields`, `request_fields` and the value of a rewritten field."""

        def read_values(direction: str, fields: Mapping[str, Value]) -> dict[str, Value]:
            return {
                path: typed_value(self._api, direction, path, value)
                for path, value in fields.items()
            }

        rewritten = {} if self.value is None else {self.path: self.value}
        return (
            read_values(self.direction, self.fields),
            read_values(REQUEST, self.request_fields),
            next(iter(read_values(self.direction, rewritten).values()), None),
        )

    def _check_error_path(self) -> None:
        if self.path and field_type(self._api, self.direction, self.path) != "int16":
            raise ValueError(f"path {self.path!r} is not an error code of {self.api}")
        if self.api and not has_error_code(self._api):
            raise ValueError(f"answers of {self.api} have no error code")

    def body(self, name: str, proxies: Sequence[str]) -> dict[str, Any]:
        """The rule in the format of the proxy."""
        fields, request_fields, value = self._typed_fields()
        return {
            "name": name,
            "links": list(proxies),
            "api": str(APIS[self._api]) if self.api else "",
            "direction": self.direction,
            "min_version": self.min_version,
            "max_version": self.max_version,
            "client_id": self.client_id,
            "fields": fields,
            "request_fields": request_fields,
            "occurrence": self.occurrence,
            "times": self.times,
            "act": self.act,
            "delay_ms": self.delay_ms,
            "bytes": self.truncated_bytes,
            "error": ERRORS[find_name("error", ERRORS, self.error)] if self.error else 0,
            "path": self.path,
            "value": value,
            "goes_on": self.goes_on,
            "probability": self.probability,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHit:
    """A frame on which a rule acted. `at_ns` is CLOCK_MONOTONIC with an error of at most
    `bound_ns`; `answered_in_ns` is the time of an answer since its request. `message` is the
    recorded message as JSON, or a text with the reason for its absence."""

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
    size_bytes: int = 0
    connection: int = 0
    answered_in_ns: int | None = None
    bound_ns: int = 0

    def row(self, fault: str) -> dict[str, Any]:
        """The row of the table `link_events`."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        row["message"] = None if self.message is None else json.dumps(self.message)
        return {"fault": fault} | row

    def __str__(self) -> str:
        text = f"{self.act} {self.api} {self.version} {self.direction} {self.occurrence}"
        return f"{text} on {self.link}{f': {self.detail}' if self.detail else ''}"


def parse_fields(text: str) -> dict[str, Value]:
    """`path=value, path=value` as a mapping; quotes around a value are left out.

    ValueError for a part without `=`.
    """
    fields: dict[str, Value] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        path, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not path=value")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        fields[path.strip()] = value[1:-1] if quoted else value
    return fields


def parse_versions(text: str) -> tuple[int, int]:
    """`9`, `3-7`, `3-` or `-7` as the least and the most version (-1: the newest).

    ValueError for another form.
    """
    least, dash, most = text.replace(" ", "").partition("-")
    most = most if dash else least
    if not text:
        return 0, NEWEST
    if not (least or most) or not all(bound.isdigit() for bound in (least, most) if bound):
        raise ValueError(f"versions {text!r}: write 9, 3-7, 3- or -7")
    versions = int(least or 0), int(most) if most else NEWEST
    if NEWEST < versions[1] < versions[0]:
        raise ValueError(f"versions {text!r}: the first is above the last")
    return versions
