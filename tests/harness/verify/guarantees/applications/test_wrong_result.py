"""Results of applications are compared with the same computed from the input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups.test_group_guarantees import healthy, judge
from urteil.harness.clients.applications.streams_windows import GRACE_MS, SIZE_MS
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import Shape

ONE = Shape(records=400, partitions=1)
Results = list[tuple[str, str | None]]


def judged(
    run_dir: Path, application: str, results: Results, tables: Tables | None = None, **options: str
) -> GuaranteeResult:
    tables = tables or stretched()
    tables["outputs"] = [
        {"run": "r", "application": application, "sink": "results", "position": position}
        | {"partition": 0, "key": key, "value": value, "value_id": None, "timestamp_ms": None}
        for position, (key, value) in enumerate(results)
    ]
    scenario = synthetic.scenario(ONE)
    load = msgspec.structs.replace(
        scenario.workload, kind="application", options={"application": application, **options}
    )
    scenario = msgspec.structs.replace(scenario, workload=load)
    names = ("wrong_result",)
    return judge(run_dir, tables, scenario, synthetic.facts(ONE), names)["wrong_result"]


def stretched() -> Tables:
    """Healthy evidence whose records are 200 ms apart."""
    tables = healthy()
    for row in (*tables["sends"], *tables["replicas"]):
        row["timestamp_ms"] = 1_000_000 + 200 * row["offset"]
    return tables


def test_stored_timestamp_counts_where_a_client_reported_another_one(tmp_path: Path) -> None:
    due = closed(windows())
    tables = stretched()
    tables["sends"][7]["timestamp_ms"] += 60_000
    assert judged(tmp_path, "streams-windows", due, tables=tables).status is Status.HOLDS


def counts() -> dict[str, int]:
    """The words of all sends, counted."""
    words: Counter[str] = Counter()
    for send in healthy()["sends"]:
        words.update((send["key"], send["client"], "even" if send["op"] % 2 == 0 else "odd"))
    return dict(words)


def table(numbers: dict[str, int]) -> Results:
    """Every update of a table that counts up to these numbers."""
    return [(key, str(n)) for key, number in numbers.items() for n in range(1, number + 1)]


def test_table_with_the_computed_counts_holds(tmp_path: Path) -> None:
    result = judged(tmp_path, "streams-count", table(counts()))
    assert (result.status, result.opportunities) == (Status.HOLDS, len(counts()))


@pytest.mark.parametrize(
    ("off", "promise", "status"),
    [
        (-1, "exactly-once", Status.VIOLATED),
        (1, "exactly-once", Status.VIOLATED),
        (-1, "at-least-once", Status.VIOLATED),
        (1, "at-least-once", Status.PERMITTED),
        (-1, "at-most-once", Status.PERMITTED),
        (1, "at-most-once", Status.VIOLATED),
    ],
)
def test_wrong_count_is_judged_by_the_promise(
    off: int, promise: str, status: Status, tmp_path: Path
) -> None:
    wrong = counts() | {"even": counts()["even"] + off}
    result = judged(tmp_path, "streams-count", table(wrong), promise=promise)
    (finding,) = result.findings
    assert (result.status, finding.sub_kind) == (status, "wrong")
    assert finding.sentence == (
        f"results: the result of even is {wrong['even']}; computed from the input it is "
        f"{counts()['even']}."
    )


def test_count_of_an_unknown_word_is_a_violation(tmp_path: Path) -> None:
    result = judged(tmp_path, "streams-count", [*table(counts()), ("ghost", "1")])
    (finding,) = result.findings
    assert (finding.sub_kind, "ghost is 1, and no record" in finding.sentence) == (
        "unexpected", True
    )  # fmt: skip


@pytest.mark.parametrize("deleted", [False, True])
def test_missing_or_deleted_count_is_a_violation(deleted: bool, tmp_path: Path) -> None:
    rows = [row for row in table(counts()) if deleted or row[0] != "odd"]
    result = judged(tmp_path, "streams-count", [*rows, *([("odd", None)] if deleted else [])])
    assert [finding.sub_kind for finding in result.findings] == ["missing"]


def test_application_without_any_output_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, "streams-count", []).status is Status.NOT_JUDGED


def windows() -> dict[str, tuple[int, bool]]:
    """The count of each key and window, and whether the window closed before the end."""
    sends = stretched()["sends"]
    last_ms = max(send["timestamp_ms"] for send in sends)
    begins = [(send["key"], send["timestamp_ms"] // SIZE_MS * SIZE_MS) for send in sends]
    return {
        f"{key}@{begin}": (number, begin + SIZE_MS + GRACE_MS <= last_ms)
        for (key, begin), number in Counter(begins).items()
    }


def closed(rows: dict[str, tuple[int, bool]]) -> Results:
    return [(key, str(number)) for key, (number, is_closed) in rows.items() if is_closed]


def test_windows_that_closed_are_due_and_others_may_be_missing(tmp_path: Path) -> None:
    due = closed(windows())
    assert 0 < len(due) < len(windows())
    assert judged(tmp_path / "closed", "streams-windows", due).status is Status.HOLDS
    every = [(key, str(number)) for key, (number, _) in windows().items()]
    assert judged(tmp_path / "all", "streams-windows", every).status is Status.HOLDS
    result: Any = judged(tmp_path / "less", "streams-windows", due[1:])
    assert [finding.sub_kind for finding in result.findings] == ["missing"]


def test_repeated_final_count_violates_exactly_once(tmp_path: Path) -> None:
    due = closed(windows())
    result = judged(tmp_path / "once", "streams-windows", [*due, due[0]])
    assert [finding.sub_kind for finding in result.findings] == ["repeated"]
    assert "was written twice" in result.findings[0].sentence
    lax = judged(tmp_path / "lax", "streams-windows", [*due, due[0]], promise="at-least-once")
    assert lax.status is Status.PERMITTED


def test_window_with_two_different_counts_is_wrong(tmp_path: Path) -> None:
    due = closed(windows())
    result = judged(tmp_path, "streams-windows", [*due, (due[0][0], "99")])
    assert [finding.sub_kind for finding in result.findings] == ["wrong"]
