"""The operations of a history file: each completion with its invocation."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from urteil.harness.imports.jepsen.edn import EdnError, Keyword, Symbol, to_edn
from urteil.harness.imports.jepsen.edn_atoms import AtomError, as_integer, atom
from urteil.harness.imports.jepsen.fast_reader import FIELDS
from urteil.harness.imports.jepsen.history_stream import Stream

Row = dict[str, Any]
STEP_NS = 1_000_000
"""Nanoseconds between operations of a history without times."""
NAMES = ("history.edn", "history.edn.gz")
STEPS = ("send", "poll", "txn")
NEMESIS = "nemesis"
"""The process that is no client."""
_TYPES = ("invoke", "ok", "fail", "info")
LARGEST = 1 << 62
"""Larger times and offsets are invalid."""


class HistoryError(ValueError):
    """The file is not a history of this workload. The message has the place and the
    expected form."""


def history_in(path: Path) -> Path:
    """The history in the folder of a store, or the file itself."""
    if not path.is_dir():
        return path
    paths = [path / name for name in NAMES if (path / name).is_file()]
    if not paths:
        raise HistoryError(
            f"{path} holds no history.edn and no sends.parquet; expected the folder of one test "
            "in a store, a history itself, or a folder of tables (docs/guide/own.md)"
        )
    return paths[0]


def pairs(path: Path) -> Iterator[tuple[Row | None, Row]]:
    """Each completion with its invocation. An operation without completion is `:info` at its
    invocation.

    Raises HistoryError with the line or operation that is invalid.
    """
    open_ops: dict[Any, Row] = {}
    for op in _add_times(operations(path)):
        if op["type"] == "invoke":
            if op["process"] in open_ops:
                raise HistoryError(f"{place_of(op)}: process {op['process']} invokes again "
                                   "before its last operation completed")  # fmt: skip
            open_ops[op["process"]] = op
        else:
            yield open_ops.pop(op["process"], None), op
    for op in open_ops.values():
        yield op, op | {"type": Keyword("info")}


def steps_of(invoked: Row | None, done: Row) -> list[list[Any]]:
    """The sends and polls of an operation as it completed: `[:send k v]`, `[:poll {...}]`."""
    steps = done.get("value")
    if steps is None and invoked is not None:
        steps = invoked.get("value")
    if not isinstance(steps, list):
        raise HistoryError(f"{place_of(done)}: the value of :{done['f']} is {show_value(steps)}, "
                           "not a vector of [:send k v] and [:poll]")  # fmt: skip
    for step in steps:
        if not _is_step(step):
            raise HistoryError(f"{place_of(done)}: {_show_step(step)} is neither [:send k v] "
                               "nor [:poll] nor [:poll {k [[offset value] ...]}]")  # fmt: skip
        if step[0] == "send" and sent_value(step)[1] is None:
            raise HistoryError(f"{place_of(done)}: {_show_step(step)} sends nil: values identify "
                               "records, and nil is none")  # fmt: skip
    return steps


def _show_step(step: Any) -> str:
    """A step as EDN. The fast reader returns the name of a step as a string."""
    if isinstance(step, list) and step and isinstance(step[0], str):
        step = [Keyword(step[0]), *step[1:]]
    return show_value(step)


def _is_step(step: Any) -> bool:
    if not isinstance(step, list) or not step:
        return False
    if step[0] == "send":
        return len(step) == 3 and (
            type(step[2]) is not list or len(step[2]) != 2 or _is_pair(step[2], -LARGEST)
        )
    polled = step[1] if len(step) > 1 else None
    return step[0] == "poll" and (
        polled is None or (isinstance(polled, dict) and _are_pairs(polled))
    )


def _are_pairs(polled: dict[Any, Any]) -> bool:
    for pairs in polled.values():
        if pairs is not None and type(pairs) is not list:
            return False
        for pair in pairs or ():
            if not (type(pair) is list and len(pair) == 2 and _is_pair(pair, 0)):
                return False
    return True


def _is_pair(pair: list[Any], least: int) -> bool:
    """Whether the first of two is an offset from `least`, or nil. Other number forms become
    integers."""
    offset = pair[0]
    if offset is None:
        return True
    if type(offset) is not int:
        offset = as_integer(offset)
        if offset is None:
            return False
        pair[0] = offset
    return least <= offset < LARGEST


def sent_value(step: list[Any]) -> tuple[int | None, Any]:
    """Offset, where it is known, and value of a `[:send k v]` or `[:send k [offset v]]`.

    Clients report an unknown offset as nil, or as a negative number.
    """
    sent = step[2]
    if not isinstance(sent, list) or len(sent) != 2:
        return None, sent
    offset, value = sent
    return (None if offset is None or offset < 0 else offset), value


def operations(path: Path, *, quick: bool = True) -> Iterator[Row]:
    """The operations of a file: maps one after the other, or one vector of them."""
    stream = Stream(path, quick=quick)
    try:
        for values, checked in stream.values():
            yield from values if checked else (_operation(value, stream) for value in values)
    except EdnError as error:
        raise HistoryError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise HistoryError(f"{path} is not text ({error}); expected history.edn") from None
    except (OSError, EOFError, zlib.error) as error:
        raise HistoryError(f"{path} cannot be unpacked: {error}") from None


def _operation(value: Any, stream: Stream) -> Row:
    """The relevant fields of an operation, with numbers of any form as integers."""
    if not isinstance(value, dict):
        raise HistoryError(
            f"{stream.place()}: {_printable(show_value(value)[:80])} is not an operation: expected "
            "a map with :type, :f, :process, :time and :value"
        )
    place = f"{stream.place()}: {place_of(value)}"
    for name in ("type", "f", "process"):
        if value.get(name) is None:
            raise HistoryError(f"{place}: an operation without :{name}")
    if value["type"] not in _TYPES:
        raise HistoryError(f"{place}: :type {show_value(value['type'])} is none of :invoke, :ok, "
                           ":fail and :info")  # fmt: skip
    values = {name: value[name] for name in FIELDS if name in value}
    if not isinstance(value["process"], str):
        values["process"] = as_integer(value["process"])
    if values["process"] is None:
        raise HistoryError(f"{place}: :process {show_value(value['process'])} is neither a number "
                           "nor a name")  # fmt: skip
    return values


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _add_times(ops: Iterable[Row]) -> Iterator[Row]:
    """Operations with index and time. Where none has one, their order replaces it."""
    untimed: Row | None = None
    for n, op in enumerate(ops):
        if op.get("index") is None:
            op["index"] = n
        at_ns = op.get("time")
        if type(at_ns) is int and 0 <= at_ns < LARGEST and untimed is None:
            yield op
        elif at_ns is None and (n == 0 or untimed is not None):
            untimed = untimed or op
            yield op | {"time": (n + 1) * STEP_NS}
        elif at_ns is None or untimed is not None:
            lacking = op if untimed is None else untimed
            raise HistoryError(f"{place_of(lacking)}: an operation without :time, though others "
                               "have one")  # fmt: skip
        else:
            yield op | {"time": _nanoseconds(op)}


def _nanoseconds(op: Row) -> int:
    at_ns = as_integer(op["time"])
    if at_ns is None or not -LARGEST < at_ns < LARGEST:
        raise HistoryError(f"{place_of(op)}: :time {show_value(op['time'])} is not a number of "
                           "nanoseconds; expected a whole one of 64 bits")  # fmt: skip
    return at_ns


def name_part(value: Any) -> str:
    """A key, value or process as part of a name.

    Different ones have different names, but a keyword, a symbol and a string of the same letters
    have the same. Maps and sets do not depend on the order of their entries.
    """
    text = value if isinstance(value, str) and _is_word(value) else show_value(_sorted(value))
    return re.sub(r"[^\w.-]", lambda match: f"~{ord(match[0]):x}", text)


def _is_word(text: str) -> bool:
    """Whether EDN reads the letters as a symbol, not as a number, nil, a boolean or a keyword."""
    try:
        return bool(text) and isinstance(atom(str(text)), Symbol)
    except AtomError:
        return False


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        entries = ((key, _sorted(nested)) for key, nested in value.items())
        return dict(sorted(entries, key=lambda entry: show_value(entry[0])))
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def place_of(op: Row) -> str:
    return f"operation {op.get('index', '?')}"


def show_value(value: Any) -> str:
    """A value as EDN, or as Python prints it where EDN has no form."""
    try:
        return to_edn(value)
    except TypeError:
        return repr(value)
