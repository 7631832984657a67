"""Histories of a model: a correct log has no findings, and each damage to its answers is found.

URTEIL_HISTORY_SEEDS says how many of each kind are played.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.harness.imports.jepsen.model import KEYS, POLL, SEND, Model
from urteil.harness.imports.jepsen.importer import load
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result, Status, Verdict

SEEDS = int(os.environ.get("URTEIL_HISTORY_SEEDS", "1"))
Op = dict[str, Any]
Damage = Callable[[Model, int, int], None]


def judged(tmp_path: Path, model: Model) -> Result:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "h.edn").write_text(model.text())
    load(tmp_path / "h.edn", tmp_path / "run", isolation="read_committed")
    return judge_run(tmp_path / "run", engine="duckdb", master=None, session=None, canary=False)


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.parametrize("transactional", [False, True])
def test_a_correct_log_passes(tmp_path: Path, *, transactional: bool, subscribed: bool) -> None:
    for seed in range(SEEDS):
        model = Model(seed, transactional, subscribed).play()
        result = judged(tmp_path / f"{seed}", model)
        assert (result.verdict, result.reasons) == (Verdict.PASS, [])


def polls(model: Model) -> list[dict[int, list[list[Any]]]]:
    """What each poll brought."""
    return [
        step[1]
        for op in model.ops
        if op["type"] != "invoke" and isinstance(op["value"], list)
        for step in op["value"]
        if isinstance(step, list) and step[0] == POLL and len(step) > 1
    ]


def lose(model: Model, key: int, value: int) -> None:
    for poll in polls(model):
        poll[key] = [pair for pair in poll.get(key, ()) if pair[1] != value]


def show_another(model: Model, key: int, value: int) -> None:
    *_, pair = [pair for poll in polls(model) for pair in poll.get(key, ()) if pair[1] == value]
    pair[1] = next(value_ for value_, state in model.logs[key] if state == "ok" and value_ != value)


def deny(model: Model, key: int, value: int) -> None:
    for op in model.ops:
        if op["type"] == "ok" and op["f"] in ("send", "txn") and _sends(op, key, value):
            op["type"] = type(op["type"])("fail")


def hide_once(model: Model, key: int, value: int) -> None:
    """The last process does not get it, the one before does."""
    for poll in reversed(polls(model)):
        if any(pair[1] == value for pair in poll.get(key, ())):
            poll[key] = [pair for pair in poll[key] if pair[1] != value]
            return


def _sends(op: Op, key: int, value: int) -> bool:
    return any(step[0] == SEND and step[1] == key and step[2] in ([_at(step), value], value)
               for step in op["value"])  # fmt: skip


def _at(step: list[Any]) -> int | None:
    return step[2][0] if isinstance(step[2], list) else None


def victims(model: Model) -> list[tuple[int, int]]:
    """Acknowledged with their offsets, in the middle of their log."""
    return [
        (step[1], step[2][1])
        for op in model.ops
        if op["type"] == "ok" and op["f"] in ("send", "txn")
        for step in op["value"]
        if step[0] == SEND and isinstance(step[2], list)
        if 3 < step[2][0] < len(model.logs[step[1]]) - 8
    ]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lose, {"lost_write"}),
        (show_another, {"inconsistent_offset", "duplicate"}),
        (deny, {"aborted_read"}),
        (hide_once, {"poll_skip", "vanished_read"}),
    ],
)
def test_damage_is_found(tmp_path: Path, damage: Damage, expected: set[str]) -> None:
    for seed in range(SEEDS):
        model = Model(seed, transactional=seed % 2 == 1, subscribed=seed % 3 == 1).play()
        key, value = Random(seed).choice(victims(model))
        damage(model, key, value)
        result = judged(tmp_path / f"{seed}", model)
        broken = {
            guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
        }
        assert expected <= broken, (seed, key, value, KEYS)
