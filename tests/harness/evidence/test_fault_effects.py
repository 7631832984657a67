"""The effects of a fault: written in its row, or implied by its name in older runs."""

from __future__ import annotations

import pytest

from urteil.chaos.effects import Effect
from urteil.harness.evidence.fault_effects import effects_of, named_effects


def test_written_effects_count() -> None:
    row = {"fault": "crash", "effects": '["cuts_links", "of_a_later_release"]'}
    assert effects_of(row) == {Effect.CUTS_LINKS, "of_a_later_release"}
    assert effects_of(row | {"effects": "[]"}) == frozenset()


@pytest.mark.parametrize(
    ("fault", "proof", "effects"),
    [
        ("crash", "b1: pid 7 gone, exit -9", {Effect.KILLS_NODES}),
        ("shutdown", "b1: pid 7 ended, exit 0", {Effect.STOPS_NODES}),
        ("shutdown", "b1: pid 7 ended, exit -9", {Effect.KILLS_NODES}),
        ("rolling_restart", "exit 137, now 8", {Effect.KILLS_NODES, Effect.RESTARTS_NODES}),
        ("meteor", "", set()),
    ],
)
def test_name_implies_the_effects_of_an_earlier_run(
    fault: str, proof: str, effects: set[Effect]
) -> None:
    assert effects_of({"fault": fault, "proof": proof, "effects": None}) == effects


def test_words_in_names_of_other_tools_imply_effects() -> None:
    assert named_effects("bump-clock") == {Effect.MOVES_CLOCKS}
    assert named_effects("start-partition-ring") == frozenset()
