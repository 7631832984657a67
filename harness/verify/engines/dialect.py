"""Translates our Spark SQL into DuckDB's dialect.

Our queries use SQL that both engines read alike, so a few replacements of words suffice. A test
compares the translation of every query with sqlglot's. sqlglot itself is a parser: its import and
the parsing of a hundred queries took a third of the judgement of 10^5 sends.
"""

from __future__ import annotations

import functools
import re

NULL_ORDER = "nulls_first_on_asc_last_on_desc"
"""The value of `default_null_order` with which DuckDB sorts as Spark does."""

_HINT = re.compile(r"/\*\+.*?\*/")
_LITERAL = re.compile(r"('[^']*')")
_WORDS = re.compile(r"\bDIV\b|\bCAST\(|`", re.IGNORECASE)
_OTHER = {"DIV": "//", "CAST(": "TRY_CAST(", "`": '"'}
_SUM = re.compile(r"'[^']*'|(?<!\w)SUM\(", re.IGNORECASE)
_OVER = re.compile(r"\s*OVER\s*\(", re.IGNORECASE)


@functools.lru_cache(maxsize=512)
def to_duckdb(query: str) -> str:
    """Translate a query for DuckDB.

    A sum of integers is a BIGINT in Spark, but a HUGEINT in DuckDB, which Parquet stores as a
    double: it is cast back. A cast that fails is NULL. Hints for Spark's planner are removed.
    """
    pieces = _LITERAL.split(_HINT.sub("", query))
    pieces[::2] = (
        _WORDS.sub(lambda match: _OTHER[match[0].upper()], piece) for piece in pieces[::2]
    )
    return _narrow("".join(pieces))


def _narrow(text: str) -> str:
    """Cast every sum, with its window, to BIGINT. From the last to the first, since an earlier sum
    may contain a later one."""
    sums = [match for match in _SUM.finditer(text) if not match[0].startswith("'")]
    for match in reversed(sums):
        end = _closing_position(text, match.end())
        if window := _OVER.match(text, end):
            end = _closing_position(text, window.end())
        text = f"{text[: match.start()]}CAST({text[match.start() : end]} AS BIGINT){text[end:]}"
    return text


def _closing_position(text: str, begin: int) -> int:
    """The position behind the parenthesis that closes the one just before `begin`."""
    depth = 1
    for match in re.finditer(r"[()]|'[^']*'", text[begin:]):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return begin + match.end()
    raise ValueError(f"a parenthesis is never closed: {text[max(0, begin - 20) : begin + 60]}")
