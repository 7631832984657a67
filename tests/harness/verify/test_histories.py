"""Generated histories: a correct one accuses nobody, and each damage to one is found and named.

URTEIL_HISTORY_SEEDS says how many seeds there are of each kind of history and of each damage.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.verify.histories.damage import OF_KIND
from tests.harness.verify.histories.history import KINDS
from tests.harness.verify.histories.runs import correct, damaged, findings, judged
from urteil.harness.verify import judgement
from urteil.harness.verify.engines import cuts, engine
from urteil.harness.verify.result import Status, Verdict

SEEDS = int(os.environ.get("URTEIL_HISTORY_SEEDS", "1"))
NO_PART_OF_IT = {
    *("unprocessed", "processed_twice", "offsets_not_atomic", "loss_not_a_suffix"),
    *("zombie_write", "hanging_txn", "g1c", "g_single", "unauthorised"),
    *("quota_exceeded", "no_delivery", "wrong_answer", "unexpected_exit"),
    *("commits_stand_still", "member_expelled", "departed_member_kept"),
    *("static_member_rebalanced", "unfinished_administration", "preferred_leader_ignored"),
    *("leadership_not_handed_over", "leaderless_partition", "dead_replica_in_isr"),
    *("shrunken_isr", "leftover_log", "wrong_log_start", "kept_too_long", "segment_not_rolled"),
    *("wrong_result", "reordered_copy", "mirror_gap", "mirror_order", "translated_too_far"),
    "quorum_log",
}
"""What needs applications, mirrors, a KRaft quorum, a pipeline, an unclean election, rights,
quotas, transactions that read or hang, the polls by which readers are known to live, a client that
asks what it knows, brokers that the lab started, members that leave, administrative tasks, or known
limits of retention and segments."""


def test_correct_histories_of_all_kinds_pass_and_are_judged(tmp_path: Path) -> None:
    for first in range(0, 8 * SEEDS, 8):
        histories, rows = correct(range(first, first + 8))
        result = judged(tmp_path / f"{first}", histories, rows)
        assert result.verdict is Verdict.PASS, (first, result.reasons)
        idle = {
            guarantee.name
            for guarantee in result.guarantees
            if guarantee.status is Status.NOT_JUDGED
        }
        assert idle <= NO_PART_OF_IT, first


def test_every_damage_is_found_where_it_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On DuckDB the result is the same part by part."""
    for seed in range(SEEDS):
        histories, rows, done = damaged([seed])
        whole = judged(tmp_path / f"{seed}", histories, rows)
        assert [str(one) for one in done if not findings(whole, one)] == []
    monkeypatch.setattr(judgement, "open_engine", engine.open_engine)
    monkeypatch.setattr(engine, "LARGE_ROWS", 0)
    monkeypatch.setattr(cuts, "PART_ROWS", len(rows["sends"]))
    parts = judged(tmp_path / "parts", histories, rows)
    for one in (whole, parts):
        one.seconds, one.phases = {}, []
    assert parts == whole


def test_every_history_kind_has_damages() -> None:
    assert OF_KIND.keys() == set(KINDS)
    assert len({apply for some in OF_KIND.values() for apply in some}) >= 40
