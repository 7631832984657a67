"""Generated histories of few readers and hidden offsets: the SQL finds what the reference proves.

Many histories are judged as one, each with keys and processes of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.harness.imports.jepsen.model import KEYS, POLL, SEND, Model
from tests.harness.imports.reference import GUARANTEES, SHARED, Txn, topics_of
from tests.harness.imports.transactions import SENTENCES, History
from urteil.harness.imports.jepsen.edn import Keyword, to_edn
from urteil.harness.imports.jepsen.importer import load
from urteil.harness.imports.tables.importer import load as load_tables
from urteil.harness.scenario import load_facts, load_scenario
from urteil.harness.verify import judgement
from urteil.harness.verify.derived.partitions import ENDS_NS
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.guarantees import GUARANTEES as JUDGED
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.reference import SmallHistory, Violation
from urteil.harness.verify.result import Finding, GuaranteeResult, Result

SEEDS = int(os.environ.get("URTEIL_HISTORY_SEEDS", "1"))
BATCH = 12
STEPS = 40
APART_NS = 10**9
Op = dict[Any, Any]
Damage = Callable[[Random, list[Op]], None]


class Partial(Model):
    """A model whose histories end without a complete read, or with one that stops short."""

    def play(self, steps: int = STEPS) -> Partial:
        for _ in range(steps):
            self._act(self.random.randrange(5))
        if self.random.random() < 0.4:
            self._poll_all()
        return self


def history(seed: int, *, transactional: bool) -> list[Op]:
    """A correct log as its clients saw it: offsets hidden, ends reported at any time."""
    random = Random(seed)
    model = Partial(seed, transactional, subscribed=seed % 3 == 2).play()
    hidden = random.choice((0.0, 0.3, 1.0))
    for op in model.ops:
        for step in _steps(op):
            if step[0] == SEND and isinstance(step[2], list) and random.random() < hidden:
                step[2] = step[2][1]
    return model.ops


def _steps(op: Op) -> list[list[Any]]:
    value = op[Keyword("value")]
    if op[Keyword("type")] == "invoke" or not isinstance(value, list):
        return []
    return [step for step in value if isinstance(step, list)]


def _polls(ops: list[Op]) -> list[list[list[Any]]]:
    """The records of each poll of one key."""
    return [
        pairs
        for op in ops
        for step in _steps(op)
        if step[0] == POLL and len(step) > 1
        for pairs in step[1].values()
        if pairs
    ]


def lose_everywhere(random: Random, ops: list[Op]) -> None:
    polls = _polls(ops)
    victim = random.choice(random.choice(polls))[1]
    for pairs in polls:
        pairs[:] = [pair for pair in pairs if pair[1] != victim]


def hide_once(random: Random, ops: list[Op]) -> None:
    pairs = random.choice(_polls(ops))
    pairs.pop(random.randrange(len(pairs)))


def move(random: Random, ops: list[Op]) -> None:
    pair = random.choice(random.choice(_polls(ops)))
    pair[0] = max(0, pair[0] + random.choice((-2, -1, 1, 2, 7)))


def swap(random: Random, ops: list[Op]) -> None:
    pairs = random.choice(_polls(ops))
    first, other = random.choice(pairs), random.choice(pairs)
    first[1], other[1] = other[1], first[1]


def repeat(random: Random, ops: list[Op]) -> None:
    pairs = random.choice(_polls(ops))
    pairs.append(list(random.choice(pairs)))


def invent(random: Random, ops: list[Op]) -> None:
    random.choice(random.choice(_polls(ops)))[1] = 10**6


def deny(random: Random, ops: list[Op]) -> None:
    """A send, or a transaction, that is said to have failed."""
    sends = [op for op in ops if any(step[0] == SEND for step in _steps(op))]
    random.choice(sends)[Keyword("type")] = Keyword("fail")


def shift_ack(random: Random, ops: list[Op]) -> None:
    acks = [
        step[2] for op in ops for step in _steps(op)
        if step[0] == SEND and isinstance(step[2], list)
    ]  # fmt: skip
    if acks:
        random.choice(acks)[0] += random.choice((1, 2, 5))


def doubt(random: Random, ops: list[Op]) -> None:
    """A send, or a transaction, whose end nobody knows."""
    sends = [op for op in ops if any(step[0] == SEND for step in _steps(op))]
    random.choice(sends)[Keyword("type")] = Keyword("info")


def expose(random: Random, ops: list[Op]) -> None:
    """A record that an earlier poll received too."""
    pairs = random.choice(_polls(ops))
    later = [pair for other in _polls(ops) if other is not pairs for pair in other]
    if later:
        pairs.append(list(random.choice(later)))


def entangle(random: Random, ops: list[Op]) -> None:
    """Two transactions that received each other's records."""
    places = {
        (key, value): offset
        for op in ops for step in _steps(op) if step[0] == POLL and len(step) > 1
        for key, pairs in step[1].items() for offset, value in pairs
    }  # fmt: skip
    sends = [(op, step) for op in ops if op[Keyword("type")] != "fail" for step in _steps(op)
             if step[0] == SEND]  # fmt: skip
    (first, sent), (other, answer) = random.choice(sends), random.choice(sends)
    for op, (_, key, stored) in ((first, answer), (other, sent)):
        offset, value = stored if isinstance(stored, list) else (places.get((key, stored)), stored)
        if offset is not None:
            op[Keyword("value")].append([POLL, {key: [[offset, value]]}])


PLAIN: tuple[Damage, ...] = (
    lose_everywhere, hide_once, move, swap, repeat, invent, deny, shift_ack, doubt, expose,
)  # fmt: skip
DAMAGES = {False: PLAIN, True: (*PLAIN, entangle)}


def _renamed(op: Op, number: int) -> Op:
    """An operation with keys, process and time of its history in a batch."""
    value, process = op[Keyword("value")], op[Keyword("process")]
    copy = dict(op)
    copy[Keyword("time")] = op[Keyword("time")] + number * APART_NS
    if isinstance(process, int):
        copy[Keyword("process")] = process + 1000 * number
        copy[Keyword("value")] = _value(value, number)
    log = op.get(Keyword("rebalance-log"))
    if log:
        keys = [key + KEYS * number for key in log[0][Keyword("keys")]]
        copy[Keyword("rebalance-log")] = [{Keyword("keys"): keys}]
    return copy


def _value(value: Any, number: int) -> Any:
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], int):
        return [key + KEYS * number for key in value]
    steps = []
    for step in value:
        if step[0] == SEND:
            steps.append([SEND, step[1] + KEYS * number, step[2]])
        elif len(step) > 1:
            steps.append([POLL, {key + KEYS * number: pairs for key, pairs in step[1].items()}])
        else:
            steps.append(step)
    return steps


def judged(tmp_path: Path, histories: list[list[Op]], isolation: str) -> tuple[Result, History]:
    """The judgement of all histories, and what the reference reads of their evidence."""
    tmp_path.mkdir()
    ops = [_renamed(op, n) for n, history in enumerate(histories) for op in history]
    for index, op in enumerate(ops):
        op[Keyword("index")] = index
    (tmp_path / "h.edn").write_text("\n".join(map(to_edn, ops)))
    run = tmp_path / "run"
    load(tmp_path / "h.edn", run, isolation=isolation)
    return _judged(run, isolation)


def judged_as_tables(
    tmp_path: Path, histories: list[list[Op]], isolation: str
) -> tuple[Result, History]:
    """The same histories as tables of sends, reads, transactions and clients, without passes."""
    judged(tmp_path, histories, isolation)
    for name in ("sends", "reads", "txns", "clients"):
        shutil.copytree(tmp_path / "run" / "evidence" / name, tmp_path / "tables" / name)
    run = tmp_path / "of-tables"
    settings = {"acks": -1, "idempotent": True, "isolation": isolation}
    load_tables(tmp_path / "tables", run, **settings, command="urteil import tables")
    return _judged(run, isolation)


def _judged(run: Path, isolation: str) -> tuple[Result, History]:
    names = ("sends", "reads", "polls", "passes", "txns", "clients", "assignments")
    folders = {name: run / "evidence" / name for name in names}
    tables = {
        name: pq.read_table(folder).to_pylist() if folder.exists() else []
        for name, folder in folders.items()
    }
    ends_ns = {
        topic.name: int(topic.config[ENDS_NS])
        for topic in load_facts(run).topics
        if ENDS_NS in topic.config
    }
    result = judge_run(run, engine="duckdb", master=None, session=None, canary=False)
    topics = topics_of(tables, ends_ns)
    txns = {(row["client"], row["txn"]): row for row in tables["txns"]}
    derived = judgement.prepare(run, load_scenario(run), load_facts(run)).tables
    partitions = [
        dict.fromkeys(DERIVED["partitions"].schema.names) | row for row in derived["partitions"]
    ]
    small = SmallHistory.of(tables, {}, derived={"partitions": partitions})
    return result, History(topics, isolation, txns, small)


def differences(result: Result, history: History) -> list[str]:
    """Sentences that one of both has and the other has not, and topics of which only one says that
    records are unread."""
    judged_guarantees = {guarantee.name: guarantee for guarantee in result.guarantees}
    topics = history.topics
    mismatches = [
        text
        for name in SHARED
        for text in of_reference_check(judged_guarantees[name], history.small)
    ]
    for name in (*GUARANTEES, *SENTENCES):
        sources = topics.values() if name in GUARANTEES else [history]
        want = [sentence for source in sources for sentence in getattr(source, name)()]
        have = [finding.sentence for finding in judged_guarantees[name].findings]
        if len(have) < 100:
            mismatches += [
                f"{name}, reference alone: {sentence}" for sentence in sorted({*want} - {*have})
            ]
        mismatches += [f"{name}, SQL alone: {sentence}" for sentence in sorted({*have} - {*want})]
    unread = {name for name, topic in topics.items() if topic.unread()}
    reasons = {reason.split("-0: ")[0] for reason in result.reasons if "no reader" in reason}
    mismatches += [f"unread, reference alone: {name}" for name in sorted(unread - reasons)]
    mismatches += of_cycles(judged_guarantees, history)
    return mismatches + [f"unread, SQL alone: {reason}" for reason in sorted(reasons - unread)]


def of_reference_check(result: GuaranteeResult, small: SmallHistory) -> Iterator[str]:
    """Violations that only the query of a guarantee or only its reference check finds."""
    guarantee = JUDGED[result.name]
    assert guarantee.reference is not None
    have = {
        Violation(finding.sub_kind, finding.topic, finding.partition, finding.offset)
        for finding in result.findings
        if finding.sub_kind in guarantee.compared_sub_kinds
    }
    want = {
        violation._replace(value_id=None, subject=None) for violation in guarantee.reference(small)
    }
    have = {
        min(want & {violation, violation._replace(sub_kind=None)}, default=violation)
        for violation in have
    }
    if len(result.findings) < 100:
        yield from (f"{guarantee.name}, reference alone: {place}" for place in want - have)
    yield from (f"{guarantee.name}, SQL alone: {place}" for place in have - want)


def of_cycles(results: dict[str, GuaranteeResult], history: History) -> list[str]:
    """Circles of transactions that only one of both has, and circles that are none."""
    kinds = {"g0": ("g0", ("ww",), "ww"), "g1c": ("g1c", ("wr",), "wr")}
    kinds["g1c with writes"] = ("g1c", ("ww", "wr"), "wr")
    if not history.reads_committed:
        del kinds["g1c"]
        kinds["g1c uncommitted"] = ("g1c", ("wr",), "wr")
    mismatches = []
    for kind, (name, edges, closing) in kinds.items():
        have = [_circle(f) for f in results[name].findings if f.sub_kind == kind]
        knots = history.knots(*edges, closing=closing)
        within = {
            next((knot for knot in knots if knot.issuperset(component)), None) for component in have
        }
        if within != knots or len(have) != len(knots):
            mismatches.append(f"{kind}: SQL {have}, reference {knots}")
    skews = bool(results["g_single"].findings)
    if skews != history.has_read_skew():
        mismatches.append(f"g_single: SQL {skews}")
    for name, edges in (("g0", "ww"), ("g1c", "ww wr"), ("g_single", "ww wr rw")):
        for finding in results[name].findings:
            allowed = "wr" if finding.sub_kind in ("g1c", "g1c uncommitted") else edges
            for left, right in pairwise(_circle(finding)):
                if not any(right in history.edges[kind][left] for kind in allowed.split()):
                    mismatches.append(f"{name}: no edge from {left} to {right}: {finding.sentence}")
    return mismatches


def _circle(finding: Finding) -> list[Txn]:
    (record,) = [record for record in finding.records if "txns" in record]
    names = [txn.rsplit("/", 1) for txn in record["txns"].split(" -> ") if "/" in txn]
    return [(client, int(number)) for client, number in names]


def batch(seed: int, *, transactional: bool) -> list[list[Op]]:
    return [history(seed * BATCH + n, transactional=transactional) for n in range(BATCH)]


@pytest.mark.parametrize(
    ("transactional", "isolation"),
    [
        (False, "read_committed"),
        pytest.param(False, "read_uncommitted", marks=pytest.mark.thorough),
        (True, "read_committed"),
        (True, "read_uncommitted"),
    ],
)
def test_correct_history_passes_only_when_fully_read(
    transactional: bool, isolation: str, tmp_path: Path
) -> None:
    for seed in range(SEEDS):
        histories = batch(seed, transactional=transactional)
        result, model = judged(tmp_path / f"{seed}", histories, isolation)
        broken = {g.name: g.findings[0].sentence for g in result.guarantees if g.violations}
        assert (broken, differences(result, model)) == ({}, [])
        unread = any(topic.unread() for topic in model.topics.values())
        assert (str(result.verdict) == "PASS") == (not unread)


FORMS = {"jepsen": judged, "tables": judged_as_tables}


@pytest.mark.parametrize(
    ("form", "transactional"), [("jepsen", False), ("jepsen", True), ("tables", True)]
)
def test_damaged_histories_have_the_findings_of_the_reference(
    form: str, transactional: bool, tmp_path: Path
) -> None:
    for seed in range(SEEDS):
        random = Random(seed)
        histories = batch(seed, transactional=transactional)
        for number, ops in enumerate(histories):
            if _polls(ops):
                damages = DAMAGES[transactional]
                damages[number % len(damages)](random, ops)
        result, model = FORMS[form](tmp_path / f"{seed}", histories, "read_committed")
        assert differences(result, model) == []
