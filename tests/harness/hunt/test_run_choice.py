"""The choice of a night's next run: weight, time since the last play, no starvation."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from tests.harness.hunt.test_night import CABLE, CALM, KILL, LOSER
from urteil.chaos.weighted_faults import RandomSchedule
from urteil.harness.bounds import Bounds
from urteil.harness.hunt.run_choice import AT, Candidate, candidates_of, next_of, unsupported_reason
from urteil.harness.scenario import ClusterSpec, Scenario
from urteil.harness.scenarios import SCENARIOS

DRAWN = Scenario(name="drawn", draw=RandomSchedule(choices=()))
ANY = Scenario(
    name="any", draw=RandomSchedule(choices=()), bounds=Bounds(dimensions=(), most_replicas=9)
)


def test_weights_multiply_by_name() -> None:
    candidates = candidates_of(
        [CALM, KILL, CABLE, DRAWN, ANY],
        ["urteil", "kafka"],
        [LOSER],
        {"kafka": 0.5, "calm": 3.0, "mutants": 0.25, "kill": 2.0},
        seed=1,
    )
    weights = {
        (candidate.scenario, candidate.target, candidate.mutant): candidate.weight
        for candidate in candidates
    }
    assert weights == {
        ("calm", "urteil", None): 3.0,
        ("calm", "kafka", None): 1.5,
        ("kill", "urteil", None): 2.0,
        ("kill", "kafka", None): 1.0,
        ("kill", "urteil", "loser"): 0.5,
        ("drawn", "urteil", None): 4.0,
        ("drawn", "kafka", None): 2.0,
        ("any", "urteil", None): 8.0,
        ("any", "kafka", None): 4.0,
    }


def test_a_mutant_that_is_mixed_in_comes_first() -> None:
    candidates = candidates_of(
        [KILL, DRAWN, ANY], ["urteil"], [LOSER], {}, seed=1, mixed_in={LOSER.name}
    )
    first = next_of(candidates, last_played=lambda _: "", plays=lambda _: 0, now_s=0.0)
    assert first is not None
    assert first.mutant == LOSER.name


def test_external_cluster_gets_supported_scenarios_only(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('bootstrap = ["127.0.0.1:1"]\nzookeeper = "127.0.0.1:2"\n')
    clocks = Scenario(name="clocks", cluster=ClusterSpec(own_clocks=True))
    sized = Scenario(name="sized", cluster=ClusterSpec(config={"message.max.bytes": "9"}))
    target = f"external:{file}"
    scenarios = [CALM, KILL, CABLE, clocks, sized]
    candidates = candidates_of(scenarios, [target], [LOSER], {}, seed=1)
    assert {(candidate.scenario, candidate.target) for candidate in candidates} == {
        ("calm", target),
        ("kill", target),
    }
    assert "clocks of their own" in unsupported_reason(clocks, target)
    assert "message.max.bytes=9" in unsupported_reason(sized, target)


def test_scenario_that_a_release_cannot_play_is_no_candidate() -> None:
    for name in ("compaction", "anything"):
        assert "segment.bytes" in unsupported_reason(SCENARIOS[name], "kafka:4.0.2")
    assert not unsupported_reason(SCENARIOS["compaction"], "kafka")


def test_zero_weight_is_never_played() -> None:
    candidates = candidates_of([CALM, KILL], ["urteil"], [LOSER], {"kill": 0.0}, seed=1)
    assert [candidate.scenario for candidate in candidates] == ["calm"]


def test_double_weight_is_played_about_twice_as_often() -> None:
    weights = {"a": 4.0, "b": 2.0, "c": 1.0, "d": 1.0}
    candidates = [Candidate(scenario=name, weight=weight) for name, weight in weights.items()]
    last: dict[str, str] = {}
    plays: Counter[str] = Counter()
    now_s = 1_800_000_000.0
    order = []
    for _ in range(400):
        candidate = next_of(
            candidates,
            lambda candidate: last.get(candidate.scenario, ""),
            lambda candidate: plays[candidate.scenario],
            now_s,
        )
        assert candidate is not None
        order.append(candidate.scenario)
        plays[candidate.scenario] += 1
        last[candidate.scenario] = time.strftime(AT, time.localtime(now_s))
        now_s += 50
    assert order[:4] == ["a", "b", "c", "d"], "what was never played, the heavier first"
    assert 165 <= plays["a"] <= 220
    assert 85 <= plays["b"] <= 115
    assert min(plays["c"], plays["d"]) >= 40


def test_no_candidates_give_no_job() -> None:
    assert next_of([], lambda _one: "", lambda _one: 0, 0.0) is None
