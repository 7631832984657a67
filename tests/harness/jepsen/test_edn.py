"""EDN as histories have it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.jepsen.edn import EdnError, Keyword, Symbol, read_all, written

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.from_regex(r"[a-z][a-z0-9?-]{0,8}", fullmatch=True).map(Keyword),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.integers() | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=4))
def test_what_is_written_is_read_again(values: list[Any]) -> None:
    assert list(read_all("\n".join(map(written, values)))) == values


def test_what_clojure_writes_is_read() -> None:
    text = """; a comment
    #jepsen.history.Op{:index 0, :time 1.5E9, :type :ok, :f :txn, :f2 my/sym, :n 12N,
      :value ([:poll {3 [[0 "a\\"\\u0041\\n"]]}]), :ks #{1 2}, :c \\a, :d #_ignored 7,
      :worst ##Inf, :more #:error{:code 3, :cause #object[java.lang.Thread 0x1f "t"]}} nil"""
    first, second = read_all(text)
    assert first["type"] == Keyword("ok")
    assert first["value"] == [[Keyword("poll"), {3: [[0, 'a"A\n']]}]]
    assert first["ks"] == frozenset({1, 2})
    assert (first["f2"], first["c"], first["d"], first["n"]) == (Symbol("my/sym"), "a", 7, 12)
    assert first["time"] == 1.5e9
    assert (first["worst"], first["more"]["code"]) == (Symbol("##Inf"), 3)
    assert second is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n[1 2", "line 2: a [ that is never closed"),
        ("[1\n2}", "line 2: a [ closed by }"),
        ("{:a}", "line 1: a map whose last key has no value"),
        ("1 ]", "line 1: a ] that closes nothing"),
        ('"open', "line 1: a character that begins nothing"),
        ("[" * 300, "line 1: more than 200 brackets in each other"),
        ("#op", "line 1: nothing behind #op"),
    ],
)
def test_damage_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(EdnError, match=told.replace("[", r"\[").replace("]", r"\]")):
        list(read_all(text))
