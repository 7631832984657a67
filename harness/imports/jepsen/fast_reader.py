"""A fast reader for operations in their common form: a run of EDN maps becomes one JSON array.

Maps of keywords, integers, vectors and strings differ from JSON by little more than their
separators. Replacements over the whole text make JSON of thousands of operations at once, and
msgspec decodes it. No replacement needs to know its context: a map that does not fit becomes
invalid JSON and goes to the general reader (`edn`). So both readers always return the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from urteil.harness.imports.jepsen.edn import Keyword, read

Row = dict[str, Any]
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PLAIN = r'[^{}"\\;#^@`~()\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xff]++'


def _map_of(depth: int) -> str:
    inner = f"|{_map_of(depth - 1)}" if depth else ""
    return rf"\{{(?:{_PLAIN}|{_STRING}{inner})*+\}}"


_FORM = re.compile(rf"(?:\#jepsen\.history\.Op)?({_map_of(3)})", re.DOTALL)
_RUN = re.compile(rf"(?:[\s,]*+(?:\#jepsen\.history\.Op)?{_map_of(3)})++", re.DOTALL | re.ASCII)
_SPACES = re.compile(r"[\s,]+", re.ASCII)
_PADDED = re.compile(r"(?<=[\[{]) | (?=[\]}])")
_ERROR = rf":error (:[\w.*+!?$%&=<>/-]+|{_STRING}|\[(?:[^\[\]{{}}\"\\]|{_STRING})*\])"
_TEXT = re.compile(rf"{_ERROR}|({_STRING})", re.DOTALL | re.ASCII)
_FIRST_KEY = re.compile(r"\{(-?(?:0|[1-9][0-9]*)) \[")
_NEXT_KEY = re.compile(r"\] (-?(?:0|[1-9][0-9]*)) \[")
_MARK = "\x01"
NAME_MARK, NAMED = "\x02", b"\\u0002"
_KEYWORD = re.compile(
    r"(?<=[ \[{]):(?!(?:send|poll)[ \]])([a-zA-Z][\w.*+!?<>=-]*+)(?=[ \]])", re.ASCII
)
_NIL = re.compile(r"(?<=[ \[{])nil(?=[ \]}])")
_FIRST_NAME = re.compile(r'\{("\\u0002[^"]*") \[')
_NEXT_NAME = re.compile(r'\] ("\\u0002[^"]*") \[')
_NAME = re.compile(r"[a-z][a-z0-9-]*\??")
BLOCK = 32
LEARNED = 64
FIELDS = ("type", "f", "process", "time", "index", "value", "error", "seek-to-beginning?",
          "rebalance-log")  # fmt: skip
OPEN = ("value", "seek-to-beginning?", "rebalance-log")
"""Fields of any form."""
WORDS = ("invoke", "ok", "fail", "info", "send", "poll", "txn", "assign", "subscribe", "crash")

Operation = TypedDict(
    "Operation",
    {
        "type": Literal["invoke", "ok", "fail", "info"],
        "f": str,
        "process": int,
        "time": NotRequired[int | float | None],
        "index": NotRequired[int | None],
        "value": NotRequired[Any],
        "error": NotRequired[str | None],
        "seek-to-beginning?": NotRequired[Any],
        "rebalance-log": NotRequired[Any],
    },
)
_decode = msgspec.json.Decoder(list[Operation]).decode


class FastReader:
    """Reads runs of operations. It learns the names of a history from operations that it could not
    read."""

    def __init__(self) -> None:
        self._keys = {name: f'"{name}":' for name in (*FIELDS, "keys")}
        self._words = {name: f'"{name}"' for name in WORDS}
        self._named = False
        """Whether keys or values are keywords."""

    def run(self, text: str, at: int) -> int:
        """The end of the run of maps that begins at a position."""
        match = _RUN.match(text, at)
        return match.end() if match else at

    def operations(self, text: str) -> Iterator[tuple[list[Row], int]]:
        """The operations of a run, in lists with the position of their text.

        An empty list stands for one map that needs the general reader.
        """
        if (whole := self._decode_rows(text)) is not None:
            yield whole, 0
            return
        forms = list(_FORM.finditer(text))
        for n in range(0, len(forms), BLOCK):
            block = forms[n : n + BLOCK]
            known = self._decode_rows(_tidy(" ".join(form[1] for form in block)))
            if known is not None:
                yield known, block[0].start()
                continue
            for form in block:
                yield self._decode_rows(_tidy(form[1])) or [], form.start()

    def learn(self, value: Any) -> None:
        """Add the names in a value of the general reader: keys of maps and other keywords, except
        those in values."""
        if len(self._keys) + len(self._words) > LEARNED:
            return
        if isinstance(value, dict):
            for key in value:
                if isinstance(key, Keyword) and _NAME.fullmatch(key) and key not in self._words:
                    self._keys.setdefault(key, f'"{key}":')
                if key != "value":
                    self.learn(value[key])
                elif type(value.get("process")) is int:
                    self._named = self._named or _has_keyword(value[key])
        elif isinstance(value, list):
            for item in value[:LEARNED]:
                self.learn(item)
        elif isinstance(value, Keyword) and _NAME.fullmatch(value) and value not in self._keys:
            self._words.setdefault(value, f'"{value}"')
            longest = sorted(self._words.items(), key=lambda word: -len(word[0]))
            self._words = dict(longest)

    def _decode_rows(self, text: str) -> list[Row] | None:
        try:
            json, keys = self._json(text)
            rows: list[Any] = _decode(json)
            if keys != sum(map(_finish, rows)):
                return None
            if self._named and NAMED in json:
                for op in rows:
                    op |= {name: _with_keywords(op[name]) for name in OPEN if name in op}
            return rows if "{" in text else None
        except (msgspec.MsgspecError, ValueError):
            return None

    def _json(self, text: str) -> tuple[bytes, int]:
        """JSON, if the text has the common form, and the number of quoted keys of polls' maps.

        Other text becomes invalid JSON, nearly always.
        """
        kept: list[str] = []
        counts = [0, 0, 0, 0]
        if '"' in text or ":error " in text:
            text = _TEXT.sub(lambda match: _replace_string(match, kept), text)
        text = text.replace("#jepsen.history.Op{", "{")
        text = text.replace(", ", " ").replace("\r\n", " ").replace("\n", " ")
        text = _NIL.sub("null", text) if self._named else text.replace("nil", "null")
        for name, quoted in self._keys.items():
            text = text.replace(f":{name} ", quoted)
        if self._named:
            if "\\u0002" in text or any("\\u0002" in piece for piece in kept):
                raise ValueError("a text that is taken for a keyword")
            text = _KEYWORD.sub(r'"\\u0002\1"', text)
            text, counts[0] = _FIRST_NAME.subn(r"{\1:[", text)
            text, counts[1] = _NEXT_NAME.subn(r"] \1:[", text)
        for name, quoted in self._words.items():
            text = text.replace(f":{name}", quoted)
        text, counts[2] = _FIRST_KEY.subn(r'{"\1":[', text)
        text, counts[3] = _NEXT_KEY.subn(r'] "\1":[', text)
        text = text.strip().replace(" ", ",")
        if kept:
            pieces = text.split(_MARK)
            text = "".join(
                piece for pair in zip(pieces, [*kept, ""], strict=True) for piece in pair
            )
        return f"[{text}]".encode("latin-1"), sum(counts)


def _replace_string(match: re.Match[str], kept: list[str]) -> str:
    """A mark in place of a string, or of an error's EDN as a string."""
    if match[1] is None:
        if "\\/" in match[2]:
            raise ValueError("an escape that JSON has and EDN has not")
        kept.append(match[2])
        return _MARK
    kept.append(msgspec.json.encode(match[1].encode("latin-1").decode("utf-8")).decode("utf-8")
                .encode("utf-8").decode("latin-1"))  # fmt: skip
    return f":error {_MARK}"


def _tidy(text: str) -> str:
    """Collapse whitespace, and remove it beside brackets.

    That may damage strings, which then go to the general reader.
    """
    if '"' in text:
        return text
    return _PADDED.sub("", _SPACES.sub(" ", text))


def _finish(op: Row) -> int:
    """Complete what JSON cannot express: errors, and numbers as keys of polls' maps. Returns their
    count."""
    value, keys = op.get("value"), 0
    if type(value) is list:
        for step in value:
            if type(step) is list and len(step) > 1 and type(step[1]) is dict:
                keys += len(step[1])
                step[1] = {
                    key if key[:1] == NAME_MARK else int(key): records
                    for key, records in step[1].items()
                }
    if (error := op.get("error")) is not None:
        op["error"] = _error(error)
    return keys


def _has_keyword(value: Any) -> bool:
    """Whether a keyword other than the names of steps occurs."""
    if isinstance(value, dict):
        return any(map(_has_keyword, (*value, *value.values())))
    if isinstance(value, list):
        return any(map(_has_keyword, value))
    return isinstance(value, Keyword) and value not in ("send", "poll")


def _with_keywords(value: Any) -> Any:
    """The value with its marked strings as keywords."""
    if type(value) is list:
        return [_with_keywords(item) for item in value]
    if type(value) is dict:
        return {_with_keywords(key): _with_keywords(item) for key, item in value.items()}
    return Keyword(value[1:]) if type(value) is str and value[:1] == NAME_MARK else value


@lru_cache(maxsize=4096)
def _error(text: str) -> Any:
    return read(text.encode("utf-8").decode("latin-1"), 0)[0]
