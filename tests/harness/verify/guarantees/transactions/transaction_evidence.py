"""Evidence whose records are all in transactions, of every fate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.verify.guarantees.groups.test_group_guarantees import Judged, healthy, judge
from urteil.harness.verify import synthetic
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.synthetic import BATCH, BEGIN_NS, END_NS, TOPIC, TOPIC_ID, S, Shape

ONE = Shape(records=400, partitions=1)
NAMES = (
    *("torn_txn", "precommitted_read", "zombie_write", "hanging_txn", "offsets_not_atomic"),
    *("unprocessed", "processed_twice", "g0", "g1c", "g_single", "aborted_read"),
)
FATES = ("committed", "committed", "aborted", "unknown", "committed", "unknown and gone")
PLACE = {"run": "r", "topic_id": TOPIC_ID, "topic": TOPIC, "partition": 0}
READER = "committed"
MS = 1_000_000
Tables = dict[str, list[dict[str, Any]]]


def transactional_tables() -> Tables:
    """Healthy evidence whose records are all in transactions, four by four, with every fate, and a
    final pass of a reader of committed records."""
    tables = healthy()
    blocks: dict[int, list[Row]] = {}
    for send in tables["sends"]:
        blocks.setdefault(send["offset"] // BATCH, []).append(send)
    tables["txns"] = [_txn(number, sends) for number, sends in blocks.items()]
    hidden = {
        send["value_id"] for number, sends in blocks.items() for send in sends if is_gone(number)
    }
    for row in tables["replicas"]:
        row["transactional"] = True
    model = next(row for row in tables["passes"] if row["final"])
    reader = next(row for row in tables["clients"] if row["client"] == "final")
    named = {"client": READER, "isolation": "read_committed"}
    tables["clients"].append(reader | named)
    tables["passes"].append(model | named)
    tables["reads"] += [
        row | {"client": READER} for row in tables["reads"]
        if row["client"] == "final" and row["pass"] == model["pass"]
        and row["value_id"] not in hidden
    ]  # fmt: skip
    for number in (2, 20, 60):
        last = blocks[number][-1]["complete_ns"]
        stable(tables, number * BATCH, last + MS // 4)
    stable(tables, ONE.records, END_NS + 7 * S)
    return tables


def is_gone(number: int) -> bool:
    return FATES[number % len(FATES)] in ("aborted", "unknown and gone")


def _txn(number: int, sends: list[Row]) -> Row:
    fate = FATES[number % len(FATES)]
    end_ns = sends[-1]["complete_ns"]
    for send in sends:
        send["txn"] = number
    return {
        "run": "r",
        "client": sends[0]["client"],
        "session": 0,
        "txn": number,
        "transactional_id": f"id-{sends[0]['client']}",
        "begin_ns": sends[0]["invoke_ns"] - MS,
        "commit_invoke_ns": None if fate == "aborted" else end_ns + MS,
        "end_ns": end_ns + 2 * MS,
        "outcome": fate.split()[0],
        "init_invoke_ns": BEGIN_NS - 3 * S,
        "init_ns": BEGIN_NS - 2 * S,
    }


def stable(tables: Tables, offset: int, at_ns: int) -> None:
    tables["offset_answers"].append(
        PLACE | {"node": 1, "invoke_ns": at_ns, "complete_ns": at_ns + 1000, "query": "stable"}
        | {"offset": offset, "api_version": 5, "leader_epoch": 0}
    )  # fmt: skip


def judged(run_dir: Path, tables: Tables, *names: str) -> Judged:
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    return judge(run_dir, tables, scenario, run_facts, names or NAMES)


def first_txn(tables: Tables, outcome: str) -> Row:
    return next(row for row in tables["txns"] if row["outcome"] == outcome)


def show_records(tables: Tables, txn: Row, count: int) -> None:
    """The reader of committed records receives this number of records of a transaction."""
    mine = [row for row in tables["sends"] if row["txn"] == txn["txn"]]
    values = [row["value_id"] for row in mine]
    hers = [row for row in tables["reads"] if row["client"] == READER]
    tables["reads"] = [
        row for row in tables["reads"] if row["client"] != READER or row["value_id"] not in values
    ]
    others = {row["value_id"]: row for row in tables["reads"] if row["client"] == "final"}
    assert hers
    tables["reads"] += [others[value] | {"client": READER, "pass": hers[0]["pass"]}
                        for value in values[:count]]  # fmt: skip
