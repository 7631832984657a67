"""Histories of jepsen.tests.kafka: our guarantees find their anomalies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from urteil.harness.imports.jepsen.edn import read_all
from urteil.harness.imports.jepsen.export import export
from urteil.harness.imports.jepsen.importer import HistoryError, load
from urteil.harness.verify.damage import Copy
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result, Status


def history(tmp_path: Path, *ops: str) -> Result:
    """The verdict on operations `type process f value [more]`, a second apart."""
    lines = []
    for index, op in enumerate(ops):
        kind, process, f, value = op.split(" ", 3)
        value, *more = value.split(" :seek", 1)
        value += "".join(f", :seek{key}" for key in more)
        lines.append(f"{{:index {index}, :time {index + 1}000000000, :type :{kind}, "
                     f":process {process}, :f :{f}, :value {value}}}")  # fmt: skip
    path = tmp_path / "history.edn"
    path.write_text("\n".join(lines))
    load(path, tmp_path / "run", isolation="read_committed")
    return judge_run(tmp_path / "run", engine="duckdb", master=None, session=None, canary=False)


def violated(result: Result) -> dict[str, int]:
    return {g.name: g.violations for g in result.guarantees if g.status is Status.VIOLATED}


def sent(process: int, key: int, value: int, offset: int | str) -> tuple[str, str]:
    return (f"invoke {process} send [[:send {key} {value}]]",
            f"ok {process} send [[:send {key} [{offset} {value}]]]")  # fmt: skip


def final(key: int) -> tuple[str, str]:
    assign = f"9 assign [{key}] :seek-to-beginning? true"
    return f"invoke {assign}", f"ok {assign}"


def polled(process: int, key: int, pairs: str) -> tuple[str, str]:
    return f"invoke {process} poll [[:poll]]", f"ok {process} poll [[:poll {{{key} [{pairs}]}}]]"


def test_a_healthy_history_passes(tmp_path: Path) -> None:
    result = history(tmp_path, *sent(0, 0, 1, 0), *sent(1, 0, 2, 1), *final(0),
                     *polled(9, 0, "[0 1] [1 2]"))  # fmt: skip
    assert (result.verdict, result.reasons) == ("PASS", [])


ANOMALIES = {
    "lost_write": lambda k: (
        *sent(0, k, 1, 0), *sent(0, k, 2, 1), *final(k), *polled(9, k, "[1 2]")),
    "inconsistent_offset": lambda k: (
        *sent(0, k, 1, 0), *sent(1, k, 2, 0), *final(k), *polled(9, k, "[0 1] [1 2]")),
    "duplicate": lambda k: (*sent(0, k, 1, 0), *final(k), *polled(9, k, "[0 1] [1 1]")),
    "aborted_read": lambda k: (
        f"invoke 0 send [[:send {k} 1]]", f"fail 0 send [[:send {k} 1]]", *sent(1, k, 2, 1),
        *final(k), *polled(9, k, "[0 1] [1 2]")),
    "nonmonotonic_poll": lambda k: (
        *sent(0, k, 1, 0), *sent(0, k, 2, 1), *final(k), *polled(9, k, "[0 1] [1 2]"),
        *polled(9, k, "[0 1]")),
    "phantom": lambda k: (*sent(0, k, 1, 0), *final(k), *polled(9, k, "[0 1] [1 77]")),
    "poll_skip": lambda k: (
        *sent(0, k, 1, 0), *sent(0, k, 2, 1), *sent(0, k, 3, 2), *final(k),
        *polled(9, k, "[0 1] [1 2] [2 3]"), f"invoke 8 assign [{k}]", f"ok 8 assign [{k}]",
        *polled(8, k, "[0 1]"), *polled(8, k, "[2 3]")),
}  # fmt: skip


def test_each_anomaly_is_found_in_its_key(tmp_path: Path) -> None:
    """One history in which every key has an anomaly of its own."""
    ops = [op for key, make in enumerate(ANOMALIES.values()) for op in make(key)]
    findings = {(f.guarantee, f.topic) for g in history(tmp_path, *ops).guarantees
             for f in g.findings}  # fmt: skip
    assert {(name, f"k{key}") for key, name in enumerate(ANOMALIES)} <= findings


def test_unknown_sends_and_crashes_are_no_violation(tmp_path: Path) -> None:
    result = history(
        tmp_path, *sent(0, 0, 1, 0), "invoke 1 send [[:send 0 2]]", "info 1 send [[:send 0 2]]",
        "invoke 3 crash nil", "info 3 crash nil", "info :nemesis kill {\"n1\" :killed}",
        "info :nemesis start {\"n1\" :started}", "invoke 2 send [[:send 0 4]]", *final(0),
        *polled(9, 0, "[0 1]"),
    )  # fmt: skip
    assert violated(result) == {}
    assert [fault.fault for fault in result.faults] == ["kill", "start"][: len(result.faults)]


def test_unpolled_records_are_unknown(tmp_path: Path) -> None:
    result = history(
        tmp_path, *sent(0, 0, 1, 0), *sent(0, 0, 2, 1), *final(0), *polled(9, 0, "[0 1]")
    )
    assert result.verdict == "UNKNOWN"
    assert any(
        "k0-0: 1 acknowledged record, the first at offset 1, lies where no reader" in message
        for message in result.reasons
    )


def test_transactions_are_judged(tmp_path: Path) -> None:
    result = history(
        tmp_path, "invoke 0 txn [[:send 0 1] [:poll]]", "ok 0 txn [[:send 0 [0 1]] [:poll {}]]",
        "invoke 0 txn [[:send 0 2]]", "fail 0 txn [[:send 0 2]]", *final(0),
        *polled(9, 0, "[0 1] [2 2]"),
    )  # fmt: skip
    assert "aborted_read" in violated(result)


def _findings(result: Result) -> Counter[tuple[str, str, int | None]]:
    return Counter((f.guarantee, f.sub_kind, f.offset) for g in result.guarantees
                   for f in g.findings if f.permitted is None)  # fmt: skip


def _lose(copy: Copy) -> None:
    gone = copy.victims[5]["value_id"]
    copy.tables["reads"] = [row for row in copy.tables["reads"] if row["value_id"] != gone]


def _again(copy: Copy) -> None:
    for row in [r for r in copy.tables["reads"] if r["offset"] == 20]:
        other = next(table for table in copy.tables["sends"] if table["offset"] == 19)
        row |= {"value_id": other["value_id"], "key": other["key"]}


@pytest.mark.parametrize("damage", [_lose, _again])
def test_exported_history_has_the_same_findings_after_import(
    tmp_path: Path, damage: Callable[[Copy], None]
) -> None:
    tables = example_runs.healthy()
    for name in ("commits", "commit_reads", "assignments", "replicas", "logs"):
        tables.pop(name, None)
    copy = example_runs.copy_of(tables)
    damage(copy)
    before = example_runs.judged(tmp_path / "run", copy.tables)
    assert export(tmp_path / "run", tmp_path / "history.edn") > 400
    load(tmp_path / "history.edn", tmp_path / "back")
    after = judge_run(tmp_path / "back", engine="duckdb", master=None, session=None, canary=False)
    known = {
        guarantee.name
        for guarantee in before.guarantees
        if guarantee.status is not Status.NOT_JUDGED
    }
    known &= {
        guarantee.name
        for guarantee in after.guarantees
        if guarantee.status is not Status.NOT_JUDGED
    }
    want = {key: n for key, n in _findings(before).items() if key[0] in known}
    assert want
    findings = {key: n for key, n in _findings(after).items() if key[0] in known - {"poll_skip"}}
    assert findings == want


def test_export_has_jepsens_form(tmp_path: Path) -> None:
    example_runs.judged(tmp_path / "run", example_runs.healthy())
    export(tmp_path / "run", tmp_path / "history.edn")
    ops = list(read_all((tmp_path / "history.edn").read_text()))
    assert [op["index"] for op in ops] == list(range(len(ops)))
    assert [op["time"] for op in ops] == sorted(op["time"] for op in ops)
    running: dict[int, str] = {}
    crashed: set[int] = set()
    for op in ops:
        process = op["process"]
        assert process not in crashed
        if op["type"] == "invoke":
            assert process not in running
            running[process] = op["f"]
        else:
            assert running.pop(process) == op["f"]
            crashed |= {process} if op["type"] == "info" else set()
    assert not running
    sends = {step[2][1] for op in ops for step in op["value"] or () if op["type"] == "ok"
             and op["f"] == "send"}  # fmt: skip
    reads = {pair[1] for op in ops if op["f"] == "poll" and op["type"] == "ok"
             for pairs in op["value"][0][1].values() for pair in pairs}  # fmt: skip
    assert sends
    assert reads <= sends, "Jepsen takes every value to have been sent"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no operation :send or :txn sends anything"),
        ("[1 2]", "1 is not an operation"),
        ("{:type :ok, :f :send, :time 1}", "operation ?: an operation without :process"),
        ("{:type :info, :f :crash, :process 0, :time 1} {:index 2, :type :ok, :f :poll, "
         ":process 0}", "operation 2: an operation without :time, though others have one"),
        ("{:index 3, :type :done, :f :send, :process 0, :time 1}", "operation 3: :type :done"),
        ("{:index 3, :type :ok, :f :send, :process 0, :time 1, :value 7}",
         "operation 3: the value of :send is 7"),
        ("{:type :ok", "line 1, column 1: a { that is never closed"),
        ("{:type :ok, :f :assign, :process 0, :value 7}",
         "operation 0: the value of :assign is 7, not a vector of keys"),
        ("{:type :ok, :f :poll, :process 0, :value [[:poll {0 5}]]}",
         "operation 0: [:poll {0 5}] is neither"),
        ("{:type :ok, :f :poll, :process 0, :value [[:poll {0 [[-1 5]]}]]}",
         "operation 0: [:poll {0 [[-1 5]]}] is neither"),
        ("{:type :ok, :f :send, :process 0, :value [[:send 0 [:a 5]]]}",
         "operation 0: [:send 0 [:a 5]] is neither"),
        ("{:type :ok, :f :send, :process 0, :value [[:send 0 [3 nil]]]}",
         "operation 0: [:send 0 [3 nil]] sends nil"),
        ("{:index 4, :type :ok, :f :send, :process [1]}",
         "line 1, column 1: operation 4: :process [1] is neither a number nor a name"),
        ("{:type :ok, :f :send, :process 1.5}", ":process 1.5 is neither"),
        ("JEPSEN\0\x1b[2J", "JEPSEN\ufffd\ufffd is not an operation"),
    ],
)  # fmt: skip
def test_invalid_history_is_reported_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "history.edn").write_text(text)
    with pytest.raises(HistoryError) as error:
        load(tmp_path / "history.edn", tmp_path / "run")
    assert message in str(error.value)


def polls(tmp_path: Path, *, transactional: bool) -> int:
    """How many are in the export of a run in which one reader saw uncommitted records."""
    tables = example_runs.healthy()
    for row in tables["clients"]:
        row["isolation"] = "read_uncommitted" if row["client"] == "c0" else "read_committed"
    if transactional:
        message = {"client": "t1", "session": 1, "txn": 1, "outcome": "committed", "begin_ns": 1}
        tables["txns"] = [{"run": tables["clients"][0]["run"]} | message]
    example_runs.judged(tmp_path, tables)
    export(tmp_path, tmp_path / "h.edn")
    return (tmp_path / "h.edn").read_text().count(":f :poll")


def test_transaction_runs_leave_out_uncommitted_readers(
    tmp_path: Path,
) -> None:
    """Jepsen takes what anybody polled for committed, and would speak of aborted reads."""
    theirs = len([row for row in example_runs.healthy()["polls"] if row["client"] == "c0"])
    assert theirs > 0
    everybody = polls(tmp_path / "plain", transactional=False)
    assert everybody - polls(tmp_path / "txns", transactional=True) == 2 * theirs
