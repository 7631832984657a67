"""Damage to the availability of a partition: what is answered late, or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from urteil.harness.verify.damage.added_topics import BOUNDED
from urteil.harness.verify.damage.compaction_and_retention import clone
from urteil.harness.verify.damage.copy import Copy, S, Untried, brokers, damage, first
from urteil.harness.verify.damage.member_departures import add_row, quiet_ns
from urteil.harness.verify.derived.prompt_intervals import (
    LATE_SEND_NS,
    MIN_POLLS,
    MIN_TICKS,
    SETTLES_NS,
)

_AGE_NS = S // 5
"""How old a record is that a fetch returns at the end of its wait."""


@damage("answer fetches at the end of their wait", "slow_fetch", "waited out")
def wait_fetches_out(copy: Copy) -> None:
    """Long before the rest, a reader gets each record a fifth of a second after its
    acknowledgement."""
    sends = clone(copy, BOUNDED)[: MIN_POLLS + 2]
    if len(sends) <= MIN_POLLS:
        raise Untried("too few records")
    begin_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 40 * copy.still_ns
    model = first(copy.rows("clients"))
    client = {"client": "made up reader", "session": 0}
    life = {"begin_ns": begin_ns - 2 * SETTLES_NS, "end_ns": begin_ns + len(sends) * S}
    settings = {"kind": "consumer", "isolation": "read_uncommitted", "group": None}
    copy.rows("clients").append(model | client | settings | life)
    for number, send in enumerate(sends):
        at_ns = begin_ns + number * S // 2
        send |= {"invoke_ns": at_ns - 1, "complete_ns": at_ns}
        places = {name: send[name] for name in ("topic_id", "topic", "partition")}
        moved = {"position_before": send["offset"], "position_after": send["offset"] + 1}
        times = {"invoke_ns": at_ns, "complete_ns": at_ns + _AGE_NS}
        copy.rows("polls").append(
            client | {"poll": number} | times | places | moved
            | {"outcome": "ok", "error": None, "event": None}
        )  # fmt: skip


@damage("acknowledge some sends late", "slow_acknowledgement", "late")
def acknowledge_some_late(copy: Copy) -> None:
    """Long before the rest, a producer waits a second for every fifth acknowledgement. Other
    damages change the first and the last sends."""
    sends = clone(copy, BOUNDED)[MIN_POLLS + 2 : -3][: MIN_TICKS + 1]
    if len(sends) <= MIN_TICKS:
        raise Untried("too few records")
    begin_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 80 * copy.still_ns
    model = first(copy.rows("clients"))
    client = {"client": "made up producer", "session": 0}
    life = {"begin_ns": begin_ns - 2 * SETTLES_NS, "end_ns": begin_ns + 2 * len(sends) * S}
    copy.rows("clients").append(
        model | client | life | {"kind": "producer", "transactional_id": None}
    )
    for number, send in enumerate(sends):
        at_ns = begin_ns + number * 2 * S
        wait_ns = 2 * LATE_SEND_NS if number % 5 == 0 else S // 100
        send |= client | {"invoke_ns": at_ns, "complete_ns": at_ns + wait_ns}


@damage("acknowledge nothing without a reason", "stalled_partition", "stalled", replicas=2)
def stall_without_reason(copy: Copy) -> None:
    """Two producers try for half a minute longer than they may have to, while nobody receives an
    answer."""
    begin_ns = quiet_ns(copy)
    _let_wait(copy, ("first", "second"), begin_ns)
    clone(copy, BOUNDED)[-1] |= {"invoke_ns": begin_ns + S, "complete_ns": begin_ns + 2 * S}


@damage("answer one producer no more", "stalled_producer", "unanswered", replicas=2)
def answer_one_producer_no_more(copy: Copy) -> None:
    """Long after, one producer waits, while another one receives an answer at times."""
    begin_ns = quiet_ns(copy) + copy.stall_ns + 40 * S
    _let_wait(copy, ("third",), begin_ns)
    for number, answered in enumerate(clone(copy, BOUNDED)[-3:-1], start=1):
        at_ns = begin_ns + number * copy.stall_ns // 2
        answered |= {"invoke_ns": at_ns - S, "complete_ns": at_ns}


def _let_wait(copy: Copy, names: Sequence[str], begin_ns: int) -> None:
    """Producers wait while a partition's leader, the controller and enough replicas are there."""
    model, send = first(copy.rows("clients")), clone(copy, BOUNDED)[-1]
    if not any(row["path"] == "/controller" for row in copy.rows("states")):
        office = {"path": "/controller", "at_ns": begin_ns, "controller": brokers(copy)[0]}
        add_row(copy, office)
    states = [row for row in copy.rows("states") if row["topic_id"] == BOUNDED.topic_id]
    in_sync = {"at_ns": begin_ns, "isr": json.dumps(brokers(copy))}
    add_row(copy, states[-1] | in_sync | {"version": states[-1]["version"] + 1})
    life = {
        "begin_ns": begin_ns,
        "end_ns": begin_ns + copy.stall_ns + 32 * S,
        "transactional_id": None,
    }
    for name in names:
        client: dict[str, Any] = {"client": f"made up {name}", "session": 0}
        copy.rows("clients").append(model | client | life | {"kind": "producer"})
        waiting = {"value_id": f"made up/{name}/0", "outcome": "info", "offset": None}
        times = {"invoke_ns": begin_ns + 2 * S, "complete_ns": None}
        copy.rows("sends").append(send | client | waiting | times)
