"""Generated histories: a correct one has no finding, and each damage to one is found and named.

URTEIL_HISTORY_SEEDS is the number of seeds of each kind of history and of each damage.
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
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.guarantees.base import Occasion
from urteil.harness.verify.result import Status, Verdict

SEEDS = int(os.environ.get("URTEIL_HISTORY_SEEDS", "1"))
OCCASIONS = {
    *(None, Occasion.TRANSACTIONS, Occasion.COMPACTION, Occasion.MIN_ISR, Occasion.FAILED_SENDS)
}
"""The occasions in the generated histories."""


def test_correct_histories_of_all_kinds_pass_and_are_judged(tmp_path: Path) -> None:
    for first in range(0, 8 * SEEDS, 8):
        histories, rows = correct(range(first, first + 8))
        result = judged(tmp_path / f"{first}", histories, rows)
        assert result.verdict is Verdict.PASS, (first, result.reasons)
        idle = [
            guarantee.name
            for guarantee in result.guarantees
            if guarantee.status is Status.NOT_JUDGED
            and GUARANTEES[guarantee.name].occasion in OCCASIONS
        ]
        assert not idle, first


def test_every_damage_is_found_where_it_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On DuckDB the result is the same part by part."""
    for seed in range(SEEDS):
        histories, rows, done = damaged([seed])
        whole_result = judged(tmp_path / f"{seed}", histories, rows)
        assert [str(damage) for damage in done if not findings(whole_result, damage)] == []
    monkeypatch.setattr(judgement, "open_engine", engine.open_engine)
    monkeypatch.setattr(engine, "LARGE_ROWS", 0)
    monkeypatch.setattr(cuts, "PART_ROWS", len(rows["sends"]))
    split_result = judged(tmp_path / "parts", histories, rows)
    for judged_result in (whole_result, split_result):
        judged_result.seconds, judged_result.phases = {}, []
    assert split_result == whole_result


def test_every_history_kind_has_damages() -> None:
    assert OF_KIND.keys() == set(KINDS)
    assert len({apply for some in OF_KIND.values() for apply in some}) >= 40
