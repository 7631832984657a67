"""EDN in the forms that histories use."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.imports.jepsen.edn import EdnError, Keyword, Symbol, read_all, to_edn

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
def test_written_edn_is_read_unchanged(values: list[Any]) -> None:
    assert list(read_all("\n".join(map(to_edn, values)))) == values


def test_clojure_output_is_read() -> None:
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
    assert (first["worst"], first["more"]["error/code"]) == (inf, 3)
    assert second is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0x1F", -31), ("017", 15), ("2r101", 5), ("36rZz", 1295), ("0x1fN", 31), ("+7", 7),
        ("0", 0), ("-0", 0), ("12N", 12), ("1.0E6", 1e6), ("1.", 1.0), ("1e-3", 0.001),
        ("1.5M", Decimal("1.5")), ("3M", Decimal(3)), ("1/3", Fraction(1, 3)), ("-4/2", -2),
        ("##Inf", inf), ("##-Inf", -inf),
        ("\\a", "a"), ("\\newline", "\n"), ("\\space", " "), ("\\backspace", "\b"),
        ("\\u0041", "A"), ("\\o101", "A"), ("\\(", "("), ("\\\\", "\\"), ("\\\"", '"'), 
        ("\\é", "é"),
        ('"\\101\\0\\u00e9\\t"', "A\0é\t"), ('"\\ud83d\\ude00"', "😀"), ('"\\ud83d"', "\ufffd"),
        ('"é\n; none"', "é\n; none"), ('#"a\\d\\"b"', 'a\\d\\"b'),
        (":a.b/c*+!-_?%&=<>'#", Keyword("a.b/c*+!-_?%&=<>'#")), (":é", Keyword("é")),
        ("a.b/c'", Symbol("a.b/c'")), ("-", Symbol("-")), ("#'user/x", Symbol("user/x")),
        ("#:a{:b 1, :_/c 2, :d/e 3, f 4, 5 6}",
         {"a/b": 1, "c": 2, "d/e": 3, "a/f": 4, 5: 6}),
        ("#::{:b 1}", {"b": 1}), ("#:a {:b 1}", {"a/b": 1}),
        ("^{:line 1} [^:dynamic x ^String y #^{:a 1} z]", ["x", "y", "z"]),
        ("#inst \"2026-01-01\"", "2026-01-01"), ("#uuid\"x\"", "x"), ("#a.B[1 2]", [1, 2]),
        ("#<Foo bar@1>", Symbol("#<Foo bar@1>")), ("#=(a 1)", ["a", 1]),
        ("[#_ 1 #_ #_ 2 3 4 #_5]", [4]), ("#_ {:a 1} 2", 2), ("#!/bin/sh\n1", 1),
        ("(1, 2\r\n,,3)", [1, 2, 3]), ("#{#{1} [2 {3 4}]}",
         frozenset({frozenset({1}), (2, ((3, 4),))})),
        ("{nil 1 [1 2] 3, {4 5} 6}", {None: 1, (1, 2): 3, ((4, 5),): 6}),
    ],
)  # fmt: skip
def test_each_form_has_its_value(text: str, value: Any) -> None:
    assert list(read_all(text)) == [value]
    assert type(next(read_all(text))) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n[1 2", "line 2, column 1: a [ that is never closed; add its ]"),
        ("[1\n2}", "line 2, column 2: a [ closed by }; expected ]"),
        (" {:a}", "line 1, column 2: a map whose last key has no value"),
        ("1 ]", "line 1, column 3: a ] that closes nothing"),
        ('"é" "open', 'line 1, column 5: a " that is never closed; add its "'),
        ("[" * 300, "line 1, column 201: more than 200 brackets in each other"),
        ("#op", "line 1, column 4: nothing behind #op"),
        ("[1 #_]", "line 1, column 6: nothing behind #_"),
        ("1 08", "line 1, column 3: 08 is not a number"),
        ("[1abc]", "line 1, column 2: 1abc is not a number"),
        ("1/0", "line 1, column 1: 1/0 is not a number"),
        ("2r3", "line 1, column 1: 2r3 is not a number"),
        ("37r1", "line 1, column 1: 37r1 is not a number"),
        ("\n @x", "line 2, column 2: @x does not begin a value of EDN"),
        ("##Foo", "line 1, column 1: ##Foo is not valid EDN"),
        ("#(a)", "line 1, column 1: # is not valid EDN"),
        ('"a\\q"', "line 1, column 2: \\q is not an escape of a string"),
        ("\\foo", "line 1, column 2: \\foo is not a character"),
        ("[:]", "line 1, column 2: a colon without a name"),
    ],
)
def test_damage_is_reported_with_place_and_remedy(text: str, message: str) -> None:
    with pytest.raises(EdnError, match=re.escape(message)):
        list(read_all(text))
