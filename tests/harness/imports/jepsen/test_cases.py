"""What jepsen.tests.kafka calls an error is a violation here, and what it allows is none.

One history of few operations for each of its errors: `jepsen.tests.kafka-test` has the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from urteil.harness.imports.jepsen.importer import HistoryError, load
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result, Status

Op = tuple[str, int | str, str, str]


def judged(tmp_path: Path, ops: Iterable[Op], isolation: str = "read_committed") -> Result:
    """The verdict on operations `type, process, f, value and what else the map has`."""
    lines = [
        f"{{:index {n}, :type :{kind}, :process {process}, :f :{f}, :value {value}}}"
        for n, (kind, process, f, value) in enumerate(ops)
    ]
    path = tmp_path / "history.edn"
    path.write_text("\n".join(lines))
    load(path, tmp_path / "run", isolation=isolation)
    return judge_run(tmp_path / "run", engine="duckdb", master=None, session=None, canary=False)


def violated(result: Result) -> dict[str, list[int | None]]:
    return {
        g.name: [f.offset for f in g.findings if f.permitted is None]
        for g in result.guarantees
        if g.status is Status.VIOLATED
    }


def done(process: int | str, f: str, asked: str, answered: str, kind: str = "ok") -> tuple[Op, Op]:
    return ("invoke", process, f, asked), (kind, process, f, answered)


def sent(process: int, *pairs: str, kind: str = "ok") -> tuple[Op, Op]:
    """`:x [0 :a]` or, of unknown offset, `:x :a`."""
    mops = " ".join(f"[:send {pair}]" for pair in pairs)
    return done(process, "send", mops and f"[{mops}]", f"[{mops}]", kind)


def polled(process: int, *records: str, kind: str = "ok", f: str = "poll") -> tuple[Op, Op]:
    mops = " ".join(f"[:poll {{{record}}}]" for record in records)
    return done(process, f, "[[:poll]]", f"[{mops}]", kind)


def assigned(process: int, keys: str, f: str = "assign", kind: str = "ok") -> tuple[Op, Op]:
    return done(process, f, f"[{keys}]", f"[{keys}]", kind)


SEEK = ", :seek-to-beginning? true"


def full_poll(process: int, records: str, keys: str = ":x") -> tuple[Op, ...]:
    """A new process polls from the beginning."""
    assign = f"[{keys}]{SEEK}"
    return (*done(process, "assign", assign, assign), *polled(process, records))


FOUR = (*sent(7, ":x [0 :a]"), *sent(7, ":x [1 :b]"), *sent(7, ":x [2 :c]"), *sent(7, ":x [3 :d]"))
ALL = ":x [[0 :a] [1 :b] [2 :c] [3 :d]]"

ERRORS: dict[str, tuple[str, int | None, tuple[Op, ...]]] = {
    "lost between what one process polled": (
        "lost_write", 1,
        (*sent(0, ":x [0 :a]"), *sent(0, ":x [1 :b]"), *sent(1, ":x :c", kind="info"),
         *assigned(2, ":x"), *polled(2, ":x [[0 :a]]"), *polled(2, ":x [[2 :c]]"))),
    "lost from a transaction of unknown end, of which another record was polled": (
        "lost_write", 0,
        (*sent(0, ":x :a", ":y [0 :b]", kind="info"), *sent(1, ":y :c", kind="info"),
         *full_poll(2, ":x [[0 :a]]"), *full_poll(3, ":y [[1 :c]]", ":y"))),
    "two values at one offset": (
        "inconsistent_offset", 7,
        (*sent(0, ":x [7 :a]"), *sent(1, ":x [7 :b]"))),
    "a failed send was polled": (
        "aborted_read", 0,
        (*sent(0, ":x :a", ":y :b", kind="fail"), *full_poll(1, ":x [[0 :a]]"))),
    "a failed send was polled in a poll that failed": (
        "aborted_read", 0,
        (*sent(0, ":x :a", kind="fail"), *polled(1, ":x [[0 :a]]", kind="fail"))),
    "skipped between two operations": (
        "poll_skip", 1,
        (*FOUR, *full_poll(8, ALL), *polled(1, ":x [[0 :a]]"), *polled(1, ":x [[2 :c]]"))),
    "skipped though the key was assigned again": (
        "poll_skip", 1,
        (*FOUR, *full_poll(8, ALL), *assigned(1, ":x"), *polled(1, ":x [[0 :a]]"),
         *assigned(1, ":x :y"), *polled(1, ":x [[2 :c]]"))),
    "skipped within one poll": (
        "poll_skip", 2,
        (*FOUR, *full_poll(8, ALL), *polled(1, ":x [[0 :a] [1 :b] [3 :d]]"))),
    "skipped between the polls of one operation of a group": (
        "poll_skip", 2,
        (*FOUR, *full_poll(8, ALL), *assigned(1, ":x", "subscribe"),
         *polled(1, ":x [[0 :a] [1 :b]]", ":x [[3 :d]]"))),
    "not rewound after a transaction that failed": (
        "poll_skip", 2,
        (*FOUR, *full_poll(8, ALL), *polled(1, ":x [[0 :a]]", f="txn"),
         *polled(1, ":x [[1 :b] [2 :c]]", kind="fail", f="txn"),
         *polled(1, ":x [[3 :d]]", f="txn"))),
    "went back between two operations": (
        "nonmonotonic_poll", 1,
        (*FOUR, *full_poll(8, ALL), *polled(1, ":x [[0 :a] [1 :b]]"), *polled(1, ":x [[1 :b]]"))),
    "went back within one poll": (
        "nonmonotonic_poll", 0,
        (*FOUR, *full_poll(8, ALL), *polled(1, ":x [[2 :c] [0 :a]]"))),
    "the same record twice in one operation": (
        "nonmonotonic_poll", 2,
        (*FOUR, *full_poll(8, ALL), *polled(1, ":x [[1 :b] [2 :c]]", ":x [[2 :c]]"))),
    "sent in one order, written in another": (
        "reordered_send", 1,
        (*sent(0, ":x [3 :c]", ":x [4 :d]"), *sent(0, ":x [1 :a]", ":x [2 :b]"))),
    "sent in one order within one operation, and nobody polled it": (
        "reordered_send", 1,
        sent(0, ":x [3 :c]", ":x [1 :a]")),
    "sent in one order, known from polls alone": (
        "reordered_send", 2,
        (*sent(0, ":x :d", ":x :b"), *sent(1, ":x :c", kind="info"),
         *full_poll(2, ":x [[2 :b] [3 :c] [4 :d]]"))),
    "acknowledged here, polled there": (
        "misplaced_ack", 1,
        (*sent(0, ":x [1 :a]"), *sent(1, ":x :b", kind="info"), *polled(2, ":x [[2 :b] [3 :a]]"))),
    "polled at two offsets": (
        "duplicate", 1,
        (*sent(0, ":x [1 :a]"), *full_poll(1, ":x [[1 :a]]"),
         *polled(2, ":x [[11 :a]]", kind="fail"))),
    "a transaction polled what it sent": (
        "precommitted_read", 0,
        done(0, "txn", "[[:send :x :a] [:poll]]",
             "[[:send :x [0 :a]] [:poll {:x [[0 :a]]}]]")),
    "two transactions polled each other's": (
        "g1c", None,
        (("invoke", 0, "txn", "[[:send :x :a] [:poll]]"),
         ("invoke", 1, "txn", "[[:send :y :b] [:poll]]"),
         ("ok", 0, "txn", "[[:send :x [0 :a]] [:poll {:y [[0 :b]]}]]"),
         ("ok", 1, "txn", "[[:send :y [0 :b]] [:poll {:x [[0 :a]]}]]"))),
    "the tail is gone": (
        "unseen", 3,
        (*FOUR, *full_poll(1, ":x [[0 :a] [1 :b] [2 :c]]"),
         *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 3}}"))),
    "lost by clients with names": (
        "lost_write", 1,
        (*(op for n, value in enumerate("abc")
           for op in done('"writer"', "send", f"[[:send :x :{value}]]",
                          f"[[:send :x [{n} :{value}]]]")),
         *done(":reader", "poll", "[[:poll]]", "[[:poll {:x [[0 :a] [2 :c]]}]]"))),
    "nothing is left": (
        "unseen", 0,
        (*FOUR, *full_poll(1, ""), *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 0}}"))),
}  # fmt: skip


def together(cases: Iterable[tuple[Op, ...]]) -> list[Op]:
    """Cases in one history, each with keys and processes of its own."""
    return [
        (kind, f"{who}" if isinstance(who, str) else 20 * n + who, f, renamed(text, n))
        for n, ops in enumerate(cases)
        for kind, who, f, text in ops
    ]


def renamed(text: str, n: int) -> str:
    return re.sub(r":([xy])\b", rf":\g<1>{n}", text)


def test_each_jepsen_error_is_found_at_its_place(tmp_path: Path) -> None:
    result = judged(tmp_path, together(ops for _, _, ops in ERRORS.values()))
    findings = {(f.guarantee, (f.topic or "")[2:], f.offset) for g in result.guarantees
             for f in g.findings if f.permitted is None}  # fmt: skip
    places = {(name, topic) for name, topic, _ in findings}
    assert [
        text
        for n, (text, (guarantee, offset, _)) in enumerate(ERRORS.items())
        if (guarantee, str(n)) not in places
        or (offset is not None and (guarantee, str(n), offset) not in findings)
    ] == []


KILL = (("info", ":nemesis", "kill", '{"n1" :killed}'),) * 2
START = (("info", ":nemesis", "start", '{"n1" :started}'),) * 2
HEALTHY: dict[str, tuple[Op, ...]] = {
    "faults at any time, and no send after them": (*FOUR, *KILL, *START, *full_poll(1, ALL)),
    "rewound after transactions that failed, or whose end is unknown": (
        *FOUR, *assigned(1, ":x"), *polled(1, ":x [[0 :a]]", f="txn"),
        *polled(1, ":x [[1 :b] [2 :c]]", kind="fail", f="txn"),
        *polled(1, ":x [[1 :b] [2 :c]]", kind="info", f="txn"),
        *polled(1, ":x [[1 :b] [2 :c]]", f="txn"), *full_poll(2, ALL)),
    "a key was dropped and assigned again": (
        *FOUR, *assigned(1, ":x"), *polled(1, ":x [[0 :a]]"), *assigned(1, ":y"),
        *assigned(1, ":x"), *polled(1, ":x [[3 :d]]"), *assigned(1, ":y"),
        *assigned(1, ":x"), *polled(1, ":x [[1 :b]]"), *full_poll(2, ALL)),
    "a group between two operations": (
        *FOUR, *assigned(1, ":x", "subscribe"), *polled(1, ":x [[2 :c]]"),
        *polled(1, ":x [[0 :a] [1 :b]]"), *full_poll(2, ALL)),
    "a rebalance during an operation": (
        *FOUR, *assigned(1, ":x", "subscribe"),
        ("invoke", 1, "poll", "[[:poll] [:poll]]"),
        ("ok", 1, "poll", "[[:poll {:x [[1 :b] [3 :d]]}] [:poll {:x [[0 :a]]}]]"
                          ", :rebalance-log [{:keys [:x]}]"),
        *full_poll(2, ALL)),
    "a process that crashed": (
        *FOUR, *polled(1, ":x [[2 :c]]"), *done(1, "crash", "nil", "nil", kind="info"),
        *polled(1, ":x [[0 :a]]"), *full_poll(2, ALL)),
    "sent between others' sends, and written over each other": (
        ("invoke", 0, "send", "[[:send :x 1] [:send :x 4] [:send :y 1]]"),
        ("invoke", 1, "send", "[[:send :x 2] [:send :y 2]]"),
        ("ok", 0, "send", "[[:send :x [0 1]] [:send :x [2 4]] [:send :y [1 1]]]"),
        ("ok", 1, "send", "[[:send :x [1 2]] [:send :y [0 2]]]"),
        *full_poll(3, ":x [[0 1] [1 2] [2 4]], :y [[0 2] [1 1]]", ":x :y")),
    "offsets between records that markers have": (
        *done(0, "txn", "[[:send :x :a] [:poll]]", "[[:send :x [0 :a]] [:poll {}]]"),
        *done(0, "txn", "[[:send :x :b]]", "[[:send :x [2 :b]]]", kind="fail"),
        *done(0, "txn", "[[:send :x :c]]", "[[:send :x [4 :c]]]"),
        *full_poll(1, ":x [[0 :a] [4 :c]]")),
    "of unknown end, with an offset that another record has": (
        *done(0, "send", "[[:send :x 1] [:send :y 1]]", "[[:send :x [0 1]] [:send :y 1]]", "info"),
        *sent(1, ":x [0 2]"), *full_poll(2, ":x [[0 2]]")),
    "an empty poll, nil values and nil offsets": (
        *sent(0, ":x [nil :a]"), *sent(0, ":x [1 :b]"), *polled(1, ":x []"),
        *polled(1, ":x nil"), *done(1, "poll", "[[:poll]]", "nil", "fail"),
        *full_poll(2, ":x [[0 :a] [1 :b] [2 nil]]")),
    "offsets that no client learned": (
        *sent(0, ":x [-1 :a]"), *sent(0, ":x [-1 :b]"), *full_poll(2, ":x [[0 :a] [1 :b]]")),
    "values that differ only in their type": (
        *sent(0, ":x [0 1]"), *sent(0, ':x [1 "1"]'), *sent(0, ":x [2 1.0]"),
        *sent(0, ":x [3 true]"), *sent(0, ':x [4 "true"]'), *sent(0, ':x [5 ""]'),
        *full_poll(2, ':x [[0 1] [1 "1"] [2 1.0] [3 true] [4 "true"] [5 ""]]')),
    "maps and sets whose entries have no order": (
        *sent(0, ":x [0 {:a 1, :b [{1 2, 3 4}]}]"), *sent(0, ":x [1 #{{:a 1, :b 2} 5}]"),
        *full_poll(2, ":x [[0 {:b [{3 4, 1 2}], :a 1}] [1 #{5 {:b 2, :a 1}}]]")),
    "rebalance logs of any form": (
        *FOUR, *assigned(1, ":x", "subscribe"),
        *(op for log in ("7", "{:keys [:x]}", "[{:keys 7}]", "[nil]", "[{:keys #{:x}}]")
          for value in [f"[[:poll {{:x [[1 :b]]}}]], :rebalance-log {log}"]
          for op in done(1, "poll", "[[:poll]]", value)),
        *full_poll(2, ALL)),
    "ends that are none": (
        *FOUR, *full_poll(1, ALL), *(
            op for end in ("99999999999999999999", "-1", "nil", ":x", "1E999999999M", "4.0")
            for op in done(1, "debug-topic-partitions", "[:x]", f"{{:x {{:end {end}}}}}"))),
    "the end was reported before any poll": (
        *FOUR, *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 9}}"), *full_poll(1, ALL)),
}  # fmt: skip


def test_anomalies_that_jepsen_allows_pass(tmp_path: Path) -> None:
    result = judged(tmp_path, together(HEALTHY.values()))
    assert (violated(result), result.reasons) == ({}, [])
    held = {g.name for g in result.guarantees if g.status is Status.HOLDS}
    assert "lost_write" in held
    assert "corrupt" not in held, "nobody compared a checksum"


def test_lost_records_have_no_order(tmp_path: Path) -> None:
    """The records after a loss take its offsets; in what is left they stand as they were sent."""
    one_after_another = (":x [0 :a]", ":x [1 :b]", ":x [2 :c]", ":x [1 :d]", ":x [2 :e]")
    ops = [op for record in one_after_another for op in sent(0, record)]
    offsets = violated(judged(tmp_path, [*ops, *full_poll(8, ":x [[0 :a] [1 :d] [2 :e]]")]))
    assert offsets["lost_write"] == [1, 2]
    assert "reordered_send" not in offsets


def test_aborted_records_read_uncommitted_are_no_violation(
    tmp_path: Path,
) -> None:
    ops = (*done(0, "txn", "[[:send :x :a] [:poll]]", "[[:send :x [0 :a]] [:poll]]", "fail"),
           *sent(1, ":x [2 :b]"), *full_poll(2, ":x [[0 :a] [2 :b]]"))  # fmt: skip
    assert violated(judged(tmp_path, ops, "read_uncommitted")) == {}


@pytest.mark.parametrize(
    ("records", "text"),
    [
        (":x [[2 :c] [3 :d]]", "kx-0: 2 acknowledged records, the first at offset 0, lie where"),
        (":x [[0 :a]]", "kx-0: 3 acknowledged records, the first at offset 1, lie where"),
        ("", "kx-0: 4 acknowledged records, the first at offset 0, lie where"),
    ],
)
def test_unpolled_partition_is_unknown(tmp_path: Path, records: str, text: str) -> None:
    result = judged(tmp_path, (*FOUR, *assigned(1, ":x"), *polled(1, records)))
    assert (violated(result), result.verdict) == ({}, "UNKNOWN")
    assert any(reason.startswith(text) for reason in result.reasons)


def test_values_sent_twice_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="operation 3 sends :a to key :x, as operation 1 did"):
        judged(tmp_path, (*sent(0, ":x [0 :a]"), *sent(0, ":x [1 :a]")))
