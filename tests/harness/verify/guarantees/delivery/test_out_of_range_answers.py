"""A position within the log is not answered with OFFSET_OUT_OF_RANGE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, topic
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult
from urteil.harness.verify.synthetic import END_NS

READER, AT = "c0", 3


def _sent_away(error: str = "OffsetOutOfRangeError") -> Tables:
    """The reader's third poll failed, and the next one begins at the reported log end."""
    tables = healthy()
    poll = next(row for row in tables["polls"] if row["client"] == READER and row["poll"] == AT)
    absent = ("topic_id", "topic", "partition", "event", "position_before", "position_after")
    fields = {"outcome": "fail", "error": error, "complete_ns": END_NS}
    tables["polls"].append(poll | dict.fromkeys(absent) | fields)
    tables["polls"].remove(poll)
    for row in tables["polls"]:
        if row["client"] == READER and row["poll"] == AT + 1:
            row["event"] = "reset"
    gone = {"client": READER, "poll": AT}
    tables["reads"] = [
        row for row in tables["reads"] if any(row[name] != gone[name] for name in gone)
    ]
    return tables


def _last(tables: Tables) -> int:
    mine = [row for row in tables["reads"] if row["client"] == READER and row["poll"] < AT]
    return max(int(row["offset"]) for row in mine)


def _judged(run_dir: Path, tables: Tables, **config: str) -> GuaranteeResult:
    facts = synthetic.facts(ONE, topics=topic(**config))
    return alone("nonmonotonic_poll", run_dir, tables, facts=facts)


@pytest.mark.parametrize("error", ["OffsetOutOfRangeError", "LogTruncationError"])
def test_committed_position_rejected_as_out_of_range_is_found(error: str, tmp_path: Path) -> None:
    tables = _sent_away(error)
    (finding,) = _judged(tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset) == ("out of range", _last(tables))
    assert finding.sentence.startswith("c0 received urteil-0@")
    assert finding.permitted is None


@pytest.mark.parametrize("excuse", ["another error", "deleted", "cut", "assigned"])
def test_out_of_range_position_with_a_cause_yields_no_finding(excuse: str, tmp_path: Path) -> None:
    tables = _sent_away()
    last = _last(tables)
    if excuse == "another error":
        tables = _sent_away("RequestTimedOutError")
    for row in tables["logs"]:
        if excuse == "deleted":
            row["log_start"] = last + 2
        elif excuse == "cut":
            row["log_end"] = last
    if excuse == "assigned":
        tables["assignments"].append(_taken(tables))
    findings = [finding for finding in _judged(tmp_path, tables).findings if not finding.permitted]
    assert not [finding for finding in findings if finding.sub_kind == "out of range"]


def _taken(tables: Tables) -> dict[str, Any]:
    mine = [row for row in tables["reads"] if row["client"] == READER and row["poll"] < AT]
    read = max(mine, key=lambda row: int(row["offset"]))
    names = ("run", "client", "session", "topic_id", "topic", "partition")
    who = {name: read[name] for name in names}
    fields = {"group": "g", "generation": 1, "member_id": "m", "event": "assigned"}
    return who | fields | {"at_ns": read["read_ns"] + 1}
