"""Lines of `urteil wire` from recorded frames."""

from __future__ import annotations

from dataclasses import replace

from urteil.chaos.link_rules import RuleHit
from urteil.harness.wire_lines import wire_line, wire_row

REQUEST = RuleHit(
    at_ns=2_000_000, link="client->b1", direction="request", api="Produce", version=9,
    correlation_id=12, client_id="orders-app", act="record", occurrence=1, size_bytes=203,
    message={
        "transaction_id": None, "acks": -1, "timeout_millis": 30000,
        "topics": [{"topic": "orders", "partitions": [
            {"partition": 0, "records": [{"first_offset": 0, "records": 1, "bytes": 168}]}]}],
    },
)  # fmt: skip
ANSWER = replace(
    REQUEST,
    direction="answer",
    answered_in_ns=2_100_000,
    message={
        "topics": [
            {
                "topic": "orders",
                "partitions": [{"partition": 0, "error_code": 0, "base_offset": 41}],
            }
        ],
        "throttle_millis": 0,
    },
)


def text(hit: RuleHit) -> str:
    return wire_line(hit, 0, 400)[13:]


def test_line_of_a_request_has_its_telling_fields() -> None:
    assert text(REQUEST) == (
        "client->b1  > Produce v9 #12 orders-app 203 B  acks=-1 timeout_millis=30000 "
        "topics=[topic=orders partitions=[partition=0 records=[records=1 bytes=168]]]"
    )


def test_line_of_an_answer_says_ok_or_the_error() -> None:
    assert (
        " 203 B 2.1 ms  ok topics=[topic=orders partitions=[partition=0 base_offset=41]]"
        in text(ANSWER)
    )
    failed = {"topics": [{"topic": "orders", "partitions": [{"partition": 0, "error_code": 6}]}]}
    assert "partition=0 error_code=NOT_LEADER_OR_FOLLOWER" in text(replace(ANSWER, message=failed))


def test_unread_message_is_shown_by_its_reason() -> None:
    assert text(replace(REQUEST, message="104857600 bytes, too long to show")).endswith(
        "(104857600 bytes, too long to show)"
    )


def test_long_line_is_cut_at_the_width() -> None:
    line = wire_line(REQUEST, 0, 80)
    assert len(line) == 80
    assert line.endswith("…")


def test_json_has_all_fields() -> None:
    row = wire_row(ANSWER, 0)
    assert row["answered_in_ms"] == 2.1
    assert row["message"] == ANSWER.message
    assert row["direction"] == "answer"
