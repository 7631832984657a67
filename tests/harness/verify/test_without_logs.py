"""A cluster that provides no logs: all records that a reader received count as part of the log.
Records of transactions that readers of committed records did not receive may be aborted, and are no
finding; committed records must be delivered to all readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, copy_of, healthy
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    READER,
    transactional_tables,
)
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import DAMAGES
from urteil.harness.verify.result import GuaranteeResult

WITHHELD = ("replicas", "logs", "states")
NAMES = ("lost_write", "vanished_read", "torn_txn")


def _without_logs(*, committed_alone: bool) -> Tables:
    tables = transactional_tables()
    for name in WITHHELD:
        tables[name] = []
    if committed_alone:
        tables["passes"] = [row for row in tables["passes"] if row["client"] != "final"]
        tables["reads"] = [row for row in tables["reads"] if row["client"] != "final"]
    return tables


def _judged(run_dir: Path, tables: Tables) -> dict[str, GuaranteeResult]:
    facts = synthetic.facts(ONE, withheld=list(WITHHELD))
    return judge(run_dir, tables, synthetic.scenario(ONE), facts, NAMES)


@pytest.mark.parametrize("alone", [False, True], ids=["both", "committed"])
def test_aborted_record_is_not_missing(alone: bool, tmp_path: Path) -> None:
    result = _judged(tmp_path, _without_logs(committed_alone=alone))
    assert [outcome.findings for outcome in result.values()] == [[], [], []]


@pytest.mark.parametrize("alone", [False, True], ids=["both", "committed"])
def test_missing_committed_record_is_found(alone: bool, tmp_path: Path) -> None:
    tables = _without_logs(committed_alone=alone)
    tables["reads"] = [
        row
        for row in tables["reads"]
        if row["offset"] != 1 or row["client"] not in (READER, "final")
    ]
    for name, result in _judged(tmp_path, tables).items():
        assert [finding.offset for finding in result.findings] == [1], name


FOUND = {
    "drop a read of a consumer": "poll_skip",
    "swap the offsets of two acknowledgements": "misplaced_ack",
    "swap two records of one producer": "reordered_send",
    "report an appended send as failed": "aborted_read",
    "break the checksum of a read": "corrupt",
}


@pytest.mark.parametrize("name", FOUND)
def test_record_read_by_any_client_existed(name: str, tmp_path: Path) -> None:
    copy = copy_of(healthy())
    next(damage for damage in DAMAGES if damage.name == name)(copy)
    facts = synthetic.facts(ONE, withheld=list(WITHHELD))
    for what, tables in (("healthy", healthy()), ("damaged", copy.tables)):
        for table in (*WITHHELD, "indexes"):
            tables[table] = []
        result = alone(FOUND[name], tmp_path / what, tables, facts=facts)
        assert (result.violations > 0) is (what == "damaged"), what
