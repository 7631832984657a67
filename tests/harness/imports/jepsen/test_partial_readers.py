"""Incomplete histories: sends without offsets, transactions of unknown end, few readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.imports.jepsen.test_cases import (
    FOUR,
    Op,
    assigned,
    done,
    full_poll,
    judged,
    polled,
    sent,
    together,
    violated,
)
from urteil.harness.verify.result import Verdict

AROUND = (*sent(0, ":x [4 :a]"), *sent(0, ":x :b"), *sent(0, ":x [6 :c]"))
"""The second record was acknowledged without an offset: it lies at 5."""


def txn(process: int, sends: str, kind: str = "ok") -> tuple[Op, Op]:
    """A transaction; `sends` are its micro-operations as they completed."""
    return done(process, "txn", f"[{sends}]", f"[{sends}]", kind)


def five(process: int) -> tuple[Op, ...]:
    """Five transactions of one record each, at every second offset."""
    return tuple(
        op for n, value in enumerate("abcde")
        for op in txn(process, f"[:send :x [{2 * n} :{value}]]")
    )  # fmt: skip


FIVE = ":x [[0 :a] [2 :b] [4 :c] [6 :d] [8 :e]]"

LOST: dict[str, tuple[Op, ...]] = {
    "one stretch over two polls": (*AROUND, *polled(1, ":x [[4 :a]]"), *polled(1, ":x [[6 :c]]")),
    "one poll": (*AROUND, *polled(1, ":x [[4 :a] [6 :c]]")),
    "two readers that meet": (
        *AROUND, *sent(0, ":x [7 :d]"), *polled(1, ":x [[4 :a] [6 :c]]"),
        *polled(2, ":x [[6 :c] [7 :d]]")),
    "neighbours whose offsets polls show": (
        *sent(0, ":x :a"), *sent(0, ":x :b"), *sent(0, ":x :c"),
        *polled(1, ":x [[4 :a] [6 :c]]")),
    "a neighbour of unknown end that was polled before": (
        *sent(0, ":x :a", kind="info"), *polled(1, ":x [[4 :a]]"), *sent(2, ":x :b"),
        *sent(2, ":x [6 :c]"), *polled(1, ":x [[6 :c]]")),
    "the first record, from the beginning": (
        *sent(0, ":x :b"), *sent(0, ":x [1 :c]"), *full_poll(1, ":x [[1 :c]]")),
    "in a committed transaction": (
        *txn(0, "[:send :x [4 :a]]"), *txn(0, "[:send :x :b]"), *txn(0, "[:send :x [8 :c]]"),
        *polled(1, ":x [[4 :a] [8 :c]]")),
    "in a transaction of unknown end that another key shows": (
        *txn(0, "[:send :x [4 :a]]"), *txn(1, "[:send :x :b] [:send :y :z]", "info"),
        *polled(2, ":y [[0 :z]]"), *txn(3, "[:send :x [8 :c]]"),
        *polled(2, ":x [[4 :a] [8 :c]]")),
    "before an end that was reported later": (
        *sent(0, ":x [0 :a]"), *sent(0, ":x :b"), *full_poll(1, ":x [[0 :a]]"),
        *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 2}}")),
}  # fmt: skip


def test_skipped_record_without_offset_is_lost(tmp_path: Path) -> None:
    result = judged(tmp_path, together(LOST.values()))
    sentences = {
        finding.topic: finding.sentence
        for guarantee in result.guarantees if guarantee.name == "lost_write"
        for finding in guarantee.findings
    }  # fmt: skip
    assert sorted(sentences) == sorted(f"kx{n}" for n in range(len(LOST)))
    assert (
        "/kx0/b (acks=all) was appended to kx0-0 without a known offset, between offset 4 and "
        "offset 6, but complete final passes over all of that did not deliver it."
        in sentences["kx0"]
    )
    assert "between its begin and offset 1" in sentences["kx5"]


UNREAD: dict[str, tuple[Op, ...]] = {
    "the last record": (*sent(0, ":x [4 :a]"), *sent(0, ":x :b"), *polled(1, ":x [[4 :a]]")),
    "the first record of a reader in the middle": (
        *sent(0, ":x :b"), *sent(0, ":x [4 :c]"), *polled(1, ":x [[4 :c]]")),
    "readers that left a gap": (
        *AROUND, *polled(1, ":x [[4 :a]]"), *polled(2, ":x [[6 :c]]")),
    "sent beside its neighbour": (
        *sent(0, ":x [4 :a]"), ("invoke", 0, "send", "[[:send :x :b]]"),
        ("invoke", 1, "send", "[[:send :x :c]]"), ("ok", 0, "send", "[[:send :x :b]]"),
        ("ok", 1, "send", "[[:send :x [6 :c]]]"), *polled(2, ":x [[4 :a] [6 :c]]")),
    "everything": (*sent(0, ":x :a"), *assigned(1, ":x"), *polled(1, "")),
    "in a transaction of unknown end that was committed": (
        *txn(0, "[:send :x [0 :a]]"), *txn(1, "[:send :x :b] [:send :y :z]", "info"),
        *full_poll(2, ":x [[0 :a]], :y [[0 :z]]", ":x :y")),
    "acknowledged after the end was reported": (
        *sent(0, ":x [0 :a]"), *full_poll(1, ":x [[0 :a]]"),
        *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 1}}"), *sent(0, ":x [1 :b]")),
    "acknowledged without an offset after the end was reported": (
        *sent(0, ":x [0 :a]"), *full_poll(1, ":x [[0 :a]]"),
        *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 1}}"), *sent(0, ":x :b")),
}  # fmt: skip


def test_unread_record_without_proof_of_loss_is_unknown(tmp_path: Path) -> None:
    result = judged(tmp_path, together(UNREAD.values()))
    assert (violated(result), result.verdict) == ({}, Verdict.UNKNOWN)
    keys_of_reasons = {
        reason.split("-0: ")[0] for reason in result.reasons if "no reader" in reason
    }
    assert sorted(keys_of_reasons) == sorted(f"kx{n}" for n in range(len(UNREAD)))


def test_places_in_the_wrong_order_prove_no_loss(tmp_path: Path) -> None:
    """The second record lies above offset 5 and below offset 2."""
    ops = (*sent(0, ":x [5 :a]"), *sent(1, ":x :b"), *sent(2, ":x [2 :c]"),
           *full_poll(3, ":x [[2 :c] [5 :a]]"))  # fmt: skip
    result = judged(tmp_path, ops)
    assert "lost_write" not in violated(result)
    assert any("kx-0: no reader received 1 record" in reason for reason in result.reasons)


def test_unacknowledged_records_are_no_reason(tmp_path: Path) -> None:
    """Of unknown end and unread, in an aborted transaction, or read without a known offset."""
    ops = (
        *sent(0, ":x [0 :a]"), *sent(1, ":x :b", kind="info"), *sent(2, ":x :c"),
        *done(3, "txn", "[[:send :x :d] [:poll]]", "[[:send :x :d] [:poll]]", "fail"),
        *txn(4, "[:send :x :e] [:send :y :f]", "info"), *full_poll(5, ":x [[0 :a] [2 :c]]"),
    )  # fmt: skip
    result = judged(tmp_path, ops)
    assert (violated(result), result.reasons) == ({}, [])


SHOWN = ":x [[2 :b] [3 :c] [4 :d]]"
OTHER = txn(1, "[:send :x :c]", "info")
INVERTED: dict[str, tuple[Op, ...]] = {
    "unknown end": (*txn(0, "[:send :x :d] [:send :x :b]", "info"), *OTHER, *full_poll(2, SHOWN)),
    "two transactions, both of unknown end": (
        *txn(0, "[:send :x :d]"), *txn(0, "[:send :x :b]", "info"), *OTHER, *full_poll(2, SHOWN)),
    "one offset from its acknowledgement": (
        *txn(0, "[:send :x [4 :d]] [:send :x :b]", "info"), *OTHER, *full_poll(2, SHOWN)),
    "polled by two readers": (
        *txn(0, "[:send :x :d] [:send :x :b]", "info"), *OTHER,
        *polled(2, ":x [[2 :b] [3 :c]]"), *polled(3, ":x [[3 :c] [4 :d]]")),
}  # fmt: skip


def test_committed_transaction_shown_by_polls_is_in_order(
    tmp_path: Path,
) -> None:
    topics = [
        finding.topic
        for guarantee in judged(tmp_path, together(INVERTED.values())).guarantees
        if guarantee.name == "reordered_send"
        for finding in guarantee.findings
    ]
    assert sorted(str(topic) for topic in topics) == sorted(f"kx{n}" for n in range(len(INVERTED)))


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_sends_of_unknown_end_outside_transactions_have_no_order(
    isolation: str, tmp_path: Path
) -> None:
    ops = (
        *sent(0, ":x :d", kind="info"), *sent(0, ":x :b", kind="info"), *sent(1, ":x [3 :c]"),
        *full_poll(2, ":x [[2 :b] [3 :c] [4 :d]]"),
    )  # fmt: skip
    assert violated(judged(tmp_path, ops, isolation)) == {}


def test_record_that_one_of_several_passes_lacks_is_not_torn(tmp_path: Path) -> None:
    ops = (
        *five(0),
        *full_poll(1, FIVE),
        *full_poll(2, FIVE),
        *full_poll(3, FIVE.replace("[4 :c] ", "")),
    )
    assert violated(judged(tmp_path, ops)) == {"vanished_read": [4], "poll_skip": [4]}


def test_missing_single_record_transaction_is_lost_and_not_torn(tmp_path: Path) -> None:
    ops = (*five(0), *full_poll(1, FIVE.replace("[4 :c] ", "")))
    offsets = violated(judged(tmp_path, ops))
    assert offsets["lost_write"] == [4]
    assert "torn_txn" not in offsets


def test_transaction_of_one_record_at_two_places_is_not_torn(tmp_path: Path) -> None:
    ops = (
        *txn(0, "[:send :x [0 :a]]"), *txn(0, "[:send :x [2 :b]]"), *txn(0, "[:send :x [6 :c]]"),
        *full_poll(1, ":x [[0 :a] [4 :b] [6 :c]]"), *full_poll(2, ":x [[0 :a] [6 :c]]"),
    )  # fmt: skip
    offsets = violated(judged(tmp_path, ops))
    assert "misplaced_ack" in offsets
    assert "torn_txn" not in offsets


TORN: dict[str, tuple[tuple[Op, ...], str]] = {
    "one record is in no pass": (
        (*txn(0, "[:send :x [0 :a]] [:send :x [1 :b]]"), *txn(0, "[:send :x [3 :c]]"),
         *full_poll(1, ":x [[0 :a] [3 :c]]")),
        "Transaction 1 of j0 (j0) was committed, yet no complete pass of a reader of committed "
        "records delivered 1 of its 2 records, the first at kx-0@1."),
    "one pass has one record, another one both": (
        (*txn(0, "[:send :x [0 :a]] [:send :x [1 :b]]"), *txn(0, "[:send :x [3 :c]]"),
         *full_poll(1, ":x [[0 :a] [3 :c]]"), *full_poll(2, ":x [[0 :a] [1 :b] [3 :c]]")),
        "Transaction 1 of j0 (j0) is visible in part: a complete pass over kx-0 delivered some of "
        "its 2 records, and passed over others, the first at kx-0@1."),
    "the pass that tore it passed over another record than a pass without any": (
        (*txn(0, "[:send :x [0 :a]] [:send :x [1 :b]] [:send :x [2 :c]]"),
         *txn(0, "[:send :x [4 :d]]"), *full_poll(1, ":x [[0 :a] [1 :b] [4 :d]]"),
         *full_poll(2, ":x [[4 :d]]"), *full_poll(3, ":x [[0 :a] [1 :b] [2 :c] [4 :d]]")),
        "Transaction 1 of j0 (j0) is visible in part: a complete pass over kx-0 delivered some of "
        "its 3 records, and passed over others, the first at kx-0@2."),
    "one of three records, of which one lies where nobody polled": (
        (*txn(0, "[:send :x [0 :a]] [:send :x [1 :b]] [:send :x [9 :d]]"),
         *txn(0, "[:send :x [3 :c]]"), *full_poll(1, ":x [[0 :a] [3 :c]]")),
        "Transaction 1 of j0 (j0) was committed, yet no complete pass of a reader of committed "
        "records delivered 1 of its 3 records, the first at kx-0@1."),
}  # fmt: skip


@pytest.mark.parametrize(("ops", "sentence"), TORN.values(), ids=TORN)
def test_torn_transaction_is_described_as_the_passes_show_it(
    ops: tuple[Op, ...], sentence: str, tmp_path: Path
) -> None:
    result = judged(tmp_path, ops)
    (torn,) = (
        guarantee.findings for guarantee in result.guarantees if guarantee.name == "torn_txn"
    )
    assert [finding.sentence for finding in torn] == [sentence]


def test_record_sent_after_reading_a_lost_one_shows_causal_loss(
    tmp_path: Path,
) -> None:
    ops = (
        *sent(0, ":x [0 :a]"), *sent(0, ":x [1 :b]"), *polled(2, ":x [[1 :b]]", kind="fail"),
        *sent(2, ":x [2 :c]"), *full_poll(3, ":x [[0 :a] [2 :c]]"),
    )  # fmt: skip
    result = judged(tmp_path, ops)
    assert violated(result)["causal_loss"] == [1]
    (findings,) = (
        guarantee.findings for guarantee in result.guarantees if guarantee.name == "causal_loss"
    )
    assert findings[0].sentence.startswith("j2 knew of ")
    assert "/kx/b at kx-0@1 (read), which is lost" in findings[0].sentence


def test_lost_records_do_not_count_as_survivors(tmp_path: Path) -> None:
    ops = (
        *sent(0, ":x [0 :a]"), *sent(0, ":x [1 :b]"), *polled(2, ":x [[1 :b]]", kind="fail"),
        *sent(1, ":x [2 :c]"), *full_poll(3, ":x [[2 :c]]"),
    )  # fmt: skip
    offsets = violated(judged(tmp_path, ops))
    assert (offsets["lost_write"], "causal_loss" in offsets) == ([0, 1], False)


A_FOR_B = "[:send :x {}] [:poll {{:y [[0 :b]]}}]"
B_FOR_A = "[:send :y {}] [:poll {{:x [[0 :a]]}}]"
CIRCLES = {
    "offsets of both": ("[0 :a]", "[0 :b]", "ok"),
    "offset of one": ("[0 :a]", ":b", "ok"),
    "no offset": (":a", ":b", "ok"),
    "unknown end": ("[0 :a]", "[0 :b]", "info"),
    "unknown end without offset": (":a", ":b", "info"),
}


@pytest.mark.parametrize(("first", "second", "kind"), CIRCLES.values(), ids=CIRCLES)
def test_transactions_that_received_each_others_records_are_a_circle(
    first: str, second: str, kind: str, tmp_path: Path
) -> None:
    first_txn, other = f"[{A_FOR_B.format(first)}]", f"[{B_FOR_A.format(second)}]"
    ops: tuple[Op, ...] = (
        ("invoke", 0, "txn", first_txn), ("invoke", 1, "txn", other), ("ok", 0, "txn", first_txn),
        (kind, 1, "txn", other),
    )  # fmt: skip
    assert violated(judged(tmp_path, ops)) == {"g1c": [0]}


def test_write_cycle_counts_records_with_places_from_reads(tmp_path: Path) -> None:
    ops = (
        ("invoke", 0, "txn", "[[:send :x :a] [:send :y :c]]"),
        ("invoke", 1, "txn", "[[:send :x :b] [:send :y :d]]"),
        ("ok", 0, "txn", "[[:send :x :a] [:send :y :c]]"),
        ("ok", 1, "txn", "[[:send :x :b] [:send :y :d]]"),
        *full_poll(2, ":x [[0 :a] [1 :b]], :y [[0 :d] [1 :c]]", ":x :y"),
    )  # fmt: skip
    (g0,) = (guarantee for guarantee in judged(tmp_path, ops).guarantees if guarantee.name == "g0")
    assert (g0.permitted, g0.findings[0].sentence) == (
        1,
        "j0/1 wrote before j1/2, at kx-0@1; j1/2 wrote before j0/1, at ky-0@1.",
    )


def test_end_reported_before_an_acknowledgement_is_no_violation(tmp_path: Path) -> None:
    ops = (
        *FOUR[:6], *full_poll(1, ":x [[0 :a] [1 :b] [2 :c]]"),
        *done(1, "debug-topic-partitions", "[:x]", "{:x {:end 3}}"), *FOUR[6:],
    )  # fmt: skip
    result = judged(tmp_path, ops)
    assert (violated(result), result.verdict) == ({}, Verdict.UNKNOWN)
