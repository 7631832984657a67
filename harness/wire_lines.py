"""Requests and answers as lines and as JSON, for `urteil wire`.

A line has the fields that say something: empty ones, -1, false and most zeros are left out, and so
are error codes of 0, for which an answer says `ok` once. JSON has all fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from urteil.chaos.link_rules import REQUEST, RuleHit
from urteil.chaos.protocol_names import ERRORS

ERROR_NAMES = {code: name for name, code in ERRORS.items()}
ERROR_FIELD = "error_code"
SHOWN_ZEROS = frozenset(
    {"partition", "partitions", "base_offset", "offset", "fetch_offset", "first_sequence"}
)
"""Fields in which 0 is as telling as any number."""
USUAL_MAGIC = 2
"""The format of record batches since 0.11."""


def wire_row(hit: RuleHit, wall_clock_ns: int) -> dict[str, Any]:
    """All of a request or answer. `wall_clock_ns` is the wall clock less CLOCK_MONOTONIC."""
    answered_in = hit.answered_in_ns
    return {
        "time": _time(hit, wall_clock_ns).isoformat(timespec="microseconds"),
        "link": hit.link,
        "direction": hit.direction,
        "api": hit.api,
        "version": hit.version,
        "correlation_id": hit.correlation_id,
        "client_id": hit.client_id,
        "bytes": hit.size_bytes,
        "connection": hit.connection,
        "answered_in_ms": None if answered_in is None else round(answered_in / 1e6, 3),
        "message": hit.message,
    }


def wire_line(hit: RuleHit, wall_clock_ns: int, width: int) -> str:
    """The same as one line of at most `width` characters."""
    arrow = ">" if hit.direction == REQUEST else "<"
    waited = "" if hit.answered_in_ns is None else f" {hit.answered_in_ns / 1e6:.1f} ms"
    line = (
        f"{_time(hit, wall_clock_ns):%H:%M:%S.%f}"[:-3]
        + f" {hit.link:<11} {arrow} {hit.api} v{hit.version} #{hit.correlation_id} "
        f"{hit.client_id or '-'} {hit.size_bytes} B{waited}  {_fields_text(hit.message)}"
    ).rstrip()
    return line if len(line) <= width else line[: width - 1] + "…"


def _time(hit: RuleHit, wall_clock_ns: int) -> datetime:
    return datetime.fromtimestamp((hit.at_ns + wall_clock_ns) / 1e9).astimezone()


def _fields_text(message: Any) -> str:
    if not isinstance(message, dict):
        return "" if message is None else f"({message})"
    codes = list(_error_codes(message))
    verdict = "ok " if codes and not any(codes) else ""
    return verdict + _text(message)


def _error_codes(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _error_codes(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name == ERROR_FIELD:
                yield int(inner)
            else:
                yield from _error_codes(inner)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        shown = {name: item for name, item in value.items() if _is_telling(name, item)}
        return " ".join(f"{name}={_field_text(name, item)}" for name, item in shown.items())
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _field_text(name: str, value: Any) -> str:
    if name == ERROR_FIELD:
        return ERROR_NAMES.get(value, str(value))
    return f"{{{_text(value)}}}" if isinstance(value, dict) else _text(value)


def _is_telling(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_telling(inner, item) for inner, item in value.items())
    if isinstance(value, list):
        return bool(value)
    if isinstance(value, bool):
        return value
    if name == "magic" and value == USUAL_MAGIC:
        return False
    if name == "acks":
        return True
    if isinstance(value, int):
        return value > 0 or (value == 0 and name in SHOWN_ZEROS) or (value < 0 and value != -1)
    return value not in (None, "", "AAAAAAAAAAAAAAAAAAAAAA")
