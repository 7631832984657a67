"""The fast reader and the general one agree, for every form, and as a stream."""

from __future__ import annotations

import codecs
import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.imports.jepsen import history_stream
from urteil.harness.imports.jepsen.edn import Keyword, to_edn
from urteil.harness.imports.jepsen.fast_reader import FastReader
from urteil.harness.imports.jepsen.operations import HistoryError, operations, pairs

WORDS = st.sampled_from(["ok", "x", "a-b", "vanilla", "poll", "time", "nil?", "send/x", "é"])
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from(['a, b :time 1 "q" \\', ":ok", "{", "}", "\\/", "\x01", "nil", "; x"])
    | WORDS.map(Keyword)
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ATOMS, inner, max_size=3),
    max_leaves=8,
)
KEYS, OFFSETS = st.integers(-3, 300), st.none() | st.integers(0, 99)
RECORDS = st.lists(st.tuples(OFFSETS, st.integers(0, 99)).map(list), max_size=3)
STEPS = (
    st.tuples(st.just(Keyword("send")), KEYS | ATOMS, st.integers(0, 99) | ATOMS).map(list)
    | st.tuples(st.just(Keyword("poll")), st.dictionaries(KEYS | ATOMS, RECORDS)).map(list)
    | st.just([Keyword("poll")])
)
MORE = st.fixed_dictionaries(
    {},
    optional={
        Keyword(name): VALUES
        for name in ("error", "node", "rebalance-log", "seek-to-beginning?", "keys")
    },
)
OPERATIONS = st.tuples(
    st.fixed_dictionaries({
        Keyword("type"): st.sampled_from(["invoke", "ok", "fail", "info"]).map(Keyword),
        Keyword("f"): st.sampled_from(["send", "poll", "txn", "assign", "else"]).map(Keyword),
        Keyword("process"): st.integers(0, 9) | st.just(Keyword("nemesis")),
        Keyword("value"): st.lists(STEPS, max_size=3) | VALUES,
        Keyword("time"): st.integers(0, 99) | st.just(1.0e6),
        Keyword("index"): st.integers(0, 99),
    }),
    MORE,
).flatmap(
    lambda of: st.permutations(list((of[0] | of[1]).items())).map(dict)
)  # fmt: skip

STYLES: dict[str, Callable[[list[str]], str]] = {
    "a line each": lambda ops: "\n".join(ops),
    "CRLF": lambda ops: "".join(f"{op}\r\n" for op in ops),
    "one vector on one line": lambda ops: f"[{', '.join(ops)}]",
    "one vector, a line each": lambda ops: "[" + "\n ".join(ops) + "\n]\n",
    "a list": lambda ops: f"({' '.join(ops)})",
    "tagged": lambda ops: "\n".join(f"#jepsen.history.Op{op}" for op in ops),
    "without a space": lambda ops: "".join(ops),
    "comments between": lambda ops: '; it\'s "odd" {\n'.join(f"{op} " for op in ops),
    "discarded ones between": lambda ops: "[" + "".join(f"#_ {op} {op}\n" for op in ops) + "#_ 1]",
    "metadata": lambda ops: "\n".join(f"^{{:line {n}}} {op}" for n, op in enumerate(ops)),
}


def _read(path: Path, *, quick: bool) -> list[Any]:
    try:
        return list(operations(path, quick=quick))
    except HistoryError as error:
        return [str(error)]


@given(
    st.lists(OPERATIONS, max_size=6),
    st.sampled_from(sorted(STYLES)),
    st.sampled_from((16, 1 << 18)),
)
def test_fast_reader_reads_as_the_general_one(
    tmp_path_factory: pytest.TempPathFactory, ops: list[Any], style: str, chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "quick.edn"
    path.write_bytes(STYLES[style]([to_edn(op) for op in ops]).encode("utf-8"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(history_stream, "CHUNK", chunk)
        read = _read(path, quick=True)
        assert read == _read(path, quick=False)
    assert len(read) == len(ops)


COMMON = "{:type :ok, :f :send, :value [[:send 5 [0 12]]], :time 7, :process 0, :index 3}"


@pytest.mark.parametrize("style", sorted(STYLES.keys() - {"without a space"}))
def test_common_operations_are_read_by_the_fast_reader(style: str, tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_text(STYLES[style]([COMMON] * 100))
    checks = [checked for values, checked in history_stream.Stream(path).values() for _ in values]
    assert len(checks) == 100
    if style not in ("metadata", "discarded ones between"):
        assert checks.count(True) >= 99


@pytest.mark.parametrize(
    "text",
    [
        COMMON.replace("]]]", ']]], :error [:timeout "no, {answer}"], :value ["n, 1"]'),
        COMMON.replace("[:send 5 [0 12]]", "[:poll {5 [[0 1] [1 2]], 6 [], 7 [[3 4]]}]"),
        COMMON.replace(", ", ",  ").replace("[[", "[ ["),
        COMMON.replace(", ", ",\n        "),
        COMMON.replace(":time 7", ":time 7.0E6"),
    ],
)  # fmt: skip
def test_less_common_operations_are_read_by_the_fast_reader(text: str) -> None:
    (operation,) = FastReader().operations(text)
    assert operation[0]


@pytest.mark.parametrize("value", ["{5 [nil 1]}", "[[[{5 [0]}]]]", "[[:poll {5 [[0 1]], 5 []}]]"])
def test_numbers_as_keys_of_other_maps_remain_numbers(value: str, tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_text(COMMON.replace("[[:send 5 [0 12]]]", value))
    assert list(operations(path)) == list(operations(path, quick=False))


def test_fast_reader_accepts_keyword_keys_and_values(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    text = "[[:send :x [0 :a]] [:poll {:x [[0 :b] [1 :ok]], 5 [[1 :c]], :y []}] [:send :ok :d]]"
    op = COMMON.replace("[[:send 5 [0 12]]]", f"{text}, :rebalance-log [{{:keys [:x :y]}}]")
    path.write_text("\n".join([op, COMMON.replace(":value [[:send 5 [0 12]]],", "")] * 5_000))
    values = list(history_stream.Stream(path).values())
    assert sum(not checked for _, checked in values) < 50
    read = list(operations(path))
    assert read == list(operations(path, quick=False))
    assert isinstance(read[-2]["value"][0][2][1], Keyword)
    assert "value" not in read[-1]


def test_fast_reader_learns_names(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_text("\n".join([COMMON.replace("}", ", :zone :west}")] * 5_000))
    values = list(history_stream.Stream(path).values())
    assert sum(not checked for _, checked in values) < 5_000 / 2
    assert values[-1][1]


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(codecs.BOM_UTF8 + text.encode()),
    ],
)  # fmt: skip
def test_each_encoding_is_read(encode: Callable[[str], bytes], tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    text = COMMON.replace("}", ', :error "é😀"}')
    path.write_bytes(encode("\r\n".join([text] * 3)))
    assert [op["error"] for op in operations(path)] == ["é😀"] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{COMMON}\n {COMMON[:40]}", "line 2, column 2: a { that is never closed; add its }"),
        (f"[{COMMON}\n {COMMON}", "line 2, column 81: the vector of operations is never closed"),
        (f"[{COMMON}\n)", "line 2, column 1: a vector closed by ); expected ]"),
        (f"{COMMON}\n]", "line 2, column 1: a ] that closes nothing"),
        (f"{COMMON}\n  :x", "line 2, column 3: :x is not an operation"),
        (f"{COMMON}\n[{COMMON}] [[{COMMON}]]", "line 2, column 84: [{:type :ok"),
        (f"{COMMON}\n{COMMON.replace(':ok', ':okay')}", "line 2, column 1: operation 3: :type"),
        (f"{COMMON}\n\n{{:type :ok}}", "line 3, column 1: operation ?: an operation without :f"),
        (f"{COMMON}\n{COMMON.replace('12', '1x2')}", "line 2, column 43: 1x2 is not a number"),
        (f"{COMMON}\n{{:f \xe9", "line 2, column 5: text that is not UTF-8"),
        (COMMON.replace(":time 7", ":time 1.5"), "operation 3: :time 1.5 is not a number"),
        (COMMON.replace(":time 7", ":time 1e300"), "operation 3: :time 1e+300 is not a number"),
        (COMMON.replace(":time 7", ":time true"), "operation 3: :time true is not a number"),
        (COMMON.replace(":time 7", ":time ##NaN"), "operation 3: :time ##NaN is not a number"),
    ],
)  # fmt: skip
def test_damage_is_reported_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(HistoryError) as refused:
        list(pairs(path))
    assert message in str(refused.value)


@pytest.mark.parametrize("number", ["1000000", "1.0E6", "1e6", "1000000M", "1000000N", "0xF4240"])
def test_times_of_every_form_are_integers(number: str, tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_text(
        COMMON.replace(":time 7", f":time {number}").replace(":process 0", ":process 0.0")
    )
    ((_, op),) = pairs(path)
    assert (op["time"], op["process"]) == (1_000_000, 0)
    assert type(op["time"]) is type(op["process"]) is int


def test_memory_is_independent_of_the_length(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"

    def peak(ops: int) -> int:
        path.write_text(f"[{' '.join([COMMON] * ops)}]")
        tracemalloc.start()
        assert sum(1 for _ in operations(path)) == ops
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    assert peak(40_000) < 1.2 * peak(20_000)
