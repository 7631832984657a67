"""Share groups: due deliveries, drained groups, and deliveries that no journal contains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy
from urteil.harness.scenario import Scenario
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import CRASH_NS, END_NS, S

NAMES = ("settled_redelivered", "unsettled_record", "two_holders", "delivery_over_limit")
LOCK_NS = 5 * S
VICTIM = 7


def sharing(**victim: Any) -> Tables:
    """Healthy evidence in which a share group accepts each record right after its send, but for one
    record's delivery, which has other columns; `times=0` leaves it out."""
    tables, times = healthy(), victim.pop("times", 1)
    for send in tables["sends"]:
        is_victim = send["offset"] == VICTIM
        row = {
            name: send[name] for name in ("topic_id", "topic", "partition", "offset", "value_id")
        }
        at_ns = send["complete_ns"]
        row |= {"client": "m1", "session": 0, "group": "g", "poll": send["offset"], "intact": True}
        row |= {"requested_ns": at_ns, "read_ns": at_ns + 1, "invoke_ns": at_ns + 2}
        row |= {"complete_ns": at_ns + 3, "acknowledgement": "accept", "outcome": "ok"}
        row |= {"delivery_count": 1}
        copies = times if is_victim else 1
        rows = [row | (victim if is_victim else {}) for _ in range(copies)]
        tables.setdefault("deliveries", []).extend(rows)
    poll(tables, END_NS + 60 * S)
    return tables


def poll(tables: Tables, at_ns: int) -> None:
    columns = dict.fromkeys(tables["polls"][0]) | {"client": "m1", "session": 0, "poll": 10**6}
    times = {"invoke_ns": at_ns - 1, "complete_ns": at_ns, "outcome": "ok"}
    tables["polls"].append(columns | times)


def scenario(**config: str) -> Scenario:
    plain = synthetic.scenario(ONE)
    names = {name.replace("_", "."): value for name, value in config.items()}
    cluster = msgspec.structs.replace(plain.cluster, config=plain.cluster.config | names)
    return msgspec.structs.replace(plain, cluster=cluster)


def kinds(result: GuaranteeResult) -> list[tuple[str, int | None]]:
    return [(finding.sub_kind, finding.offset) for finding in result.findings]


@pytest.mark.parametrize("name", NAMES)
def test_group_that_accepts_everything_keeps_every_promise(name: str, tmp_path: Path) -> None:
    result = alone(name, tmp_path, sharing())
    assert (result.status, result.opportunities >= ONE.records) == (Status.HOLDS, True)


@pytest.mark.parametrize(
    ("victim", "kind"),
    [
        ({"times": 0}, "never delivered"),
        ({"acknowledgement": "release"}, "released"),
        ({"outcome": "fail"}, "lock ran out"),
        ({"outcome": "info"}, None),
        ({"acknowledgement": "release", "delivery_count": 2}, None),
    ],
)
def test_record_is_owed_unless_unseen_deliveries_may_have_archived_it(
    victim: dict[str, Any], kind: str | None, tmp_path: Path
) -> None:
    """The limit is 5; in the crash of 8 s, with locks of 5 s, three deliveries may be unseen."""
    found = kinds(alone("unsettled_record", tmp_path, sharing(**victim)))
    assert found == ([] if kind is None else [(kind, VICTIM)])


def test_higher_limit_leaves_room_for_unseen_deliveries(tmp_path: Path) -> None:
    tables = sharing(acknowledgement="release", delivery_count=2)
    asked = scenario(group_share_delivery_count_limit="6")
    result = alone("unsettled_record", tmp_path, tables, scenario=asked)
    assert kinds(result) == [("released", VICTIM)]


def test_nothing_is_owed_to_a_group_that_stops_early(tmp_path: Path) -> None:
    tables = sharing(times=0)
    tables["polls"].pop()
    last_ns = max(row["read_ns"] for row in tables["deliveries"])
    poll(tables, last_ns + LOCK_NS + 7 * S)
    assert kinds(alone("unsettled_record", tmp_path / "early", tables)) == [
        ("never delivered", VICTIM)
    ], "it polled long after this record"
    tables["sends"][VICTIM]["complete_ns"] = last_ns
    assert kinds(alone("unsettled_record", tmp_path / "late", tables)) == []


def test_nothing_is_owed_while_a_fault_acts(tmp_path: Path) -> None:
    tables = sharing(times=0)
    for fault in tables["faults"]:
        fault |= {"end_ns": None, "healed_ns": None}
    result = alone("unsettled_record", tmp_path, tables)
    assert (result.status, result.opportunities) == (Status.NOT_JUDGED, 0)


@pytest.mark.parametrize(
    ("read_ns", "is_found"), [(LOCK_NS - 2, True), (LOCK_NS, False)], ids=["locked", "free"]
)
def test_lock_ends_no_sooner_than_after_its_duration(
    read_ns: int, is_found: bool, tmp_path: Path
) -> None:
    """By the request, which is the earliest time at which the record may have been acquired."""
    tables = sharing(invoke_ns=END_NS, complete_ns=END_NS + 1)
    first = next(row for row in tables["deliveries"] if row["offset"] == VICTIM)
    times = {"requested_ns": first["read_ns"] + 1, "read_ns": first["requested_ns"] + read_ns}
    times |= {"invoke_ns": END_NS + 2, "complete_ns": END_NS + 3}
    tables["deliveries"].append(first | times | {"client": "m2", "delivery_count": 2})
    found = kinds(alone("two_holders", tmp_path, tables))
    assert found == ([("held by another", VICTIM)] if is_found else [])


def test_change_of_leader_frees_locks(tmp_path: Path) -> None:
    tables = sharing()
    first = next(row for row in tables["deliveries"] if row["read_ns"] > CRASH_NS)
    first |= {"requested_ns": CRASH_NS - S, "read_ns": CRASH_NS - S + 1}
    first |= {"invoke_ns": END_NS, "complete_ns": END_NS + 1}
    times = {"requested_ns": CRASH_NS - S + 2, "read_ns": CRASH_NS + 3 * S}
    tables["deliveries"].append(first | times | {"client": "m2", "invoke_ns": END_NS + 2,
                                                 "complete_ns": END_NS + 3})  # fmt: skip
    assert kinds(alone("two_holders", tmp_path, tables)) == []


def test_limit_of_the_brokers_settings_counts(tmp_path: Path) -> None:
    tables = sharing(delivery_count=6)
    assert kinds(alone("delivery_over_limit", tmp_path / "5", tables)) == [
        ("over the limit", VICTIM)
    ]
    asked = scenario(group_share_delivery_count_limit="6")
    assert kinds(alone("delivery_over_limit", tmp_path / "6", tables, scenario=asked)) == []


def test_limit_of_an_external_cluster_is_unknown(tmp_path: Path) -> None:
    tables = sharing(delivery_count=6)
    asked = msgspec.structs.replace(scenario(), target="external:cluster.toml")
    result = alone("delivery_over_limit", tmp_path, tables, scenario=asked)
    assert (result.status, result.opportunities) == (Status.NOT_JUDGED, 0)
