"""The scenario that a seed draws within bounds: valid, the same again, and all of the bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from urteil.chaos.faults import FAULTS
from urteil.harness.bounds import Dimension, Value
from urteil.harness.clients.kind import libraries_of
from urteil.harness.clients.workload import check_workload
from urteil.harness.drawn_scenario import draw_scenario
from urteil.harness.hunt.shrinking.schedule_reduction import keep_faults
from urteil.harness.permits import permits_of
from urteil.harness.permitted_deviations import Permit
from urteil.harness.run.playable import fit_to_releases
from urteil.harness.run.topics import fit_topics
from urteil.harness.scenario import Scenario
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.scenarios.anything import DIMENSIONS, MOST_REPLICAS
from urteil.harness.schedule import (
    load_schedule,
    save_schedule,
    schedule_of,
    settle_schedule,
    with_schedule,
)

ANYTHING = SCENARIOS["anything"]
FEW = range(60)
MANY = range(1_000)
LONG_RANGE = 20
"""Of a dimension with as many values, the large ones are rare."""


@cache
def drawn(seed: int) -> Scenario:
    return draw_scenario(replace(ANYTHING, seed=seed))


@pytest.mark.parametrize(
    "seeds", [FEW, pytest.param(MANY, marks=pytest.mark.thorough)], ids=["few", "many"]
)
def test_every_drawn_scenario_can_be_played(seeds: range) -> None:
    for seed in seeds:
        scenario = settle_schedule(drawn(seed))
        check_workload(scenario.workload)
        assert scenario.workload.client in libraries_of(scenario)
        assert fit_topics(scenario) == list(scenario.workload.topics), "fits without changes"
        for target in ("urteil", "kafka:3.9.1"):
            assert fit_to_releases(replace(scenario, target=target)).faults == scenario.faults
        assert scenario.faults, seed
        assert _is_supported(scenario, "urteil")
        assert 1 <= len(scenario.workload.topics) <= 40
        replicas = sum(t.partitions * t.replication_factor for t in scenario.workload.topics)
        assert replicas <= MOST_REPLICAS
        assert scenario.workload.topics[0].replication_factor > 1, "faults have a follower"
        assert scenario.survives == (Permit.STANDSTILL not in permits_of(drawn(seed)))
        assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


def _is_supported(scenario: Scenario, target: str) -> bool:
    return not any(
        FAULTS[fault.fault].unsupported_reason(
            runtime="process", target=target, selector=fault.target, options=fault.options
        )
        for fault in scenario.faults
    )


@pytest.mark.thorough
def test_every_value_of_every_dimension_is_drawn() -> None:
    reached: dict[tuple[str, str], set[str]] = defaultdict(set)
    for seed in MANY:
        for place, name, value in _properties(drawn(seed)):
            reached[place, name].add(value)
    for dimension in DIMENSIONS:
        drawn_values = reached[dimension.of, dimension.name]
        missing = [v for v in dimension.values if v is not None and _text(v) not in drawn_values]
        if len(dimension.values) < LONG_RANGE:
            assert not missing, dimension
        else:
            assert min(map(int, missing)) > 15, dimension.name
            assert max(map(int, drawn_values)) > dimension.values[-1] * 2 / 3, dimension.name


def _properties(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    load, cluster = scenario.workload, scenario.cluster
    assert scenario.draw is not None
    fields = [
        *(("cluster", *pair) for pair in msgspec.structs.asdict(cluster).items()),
        *(
            ("clients", *pair)
            for pair in msgspec.structs.asdict(load).items()
            if pair[0] != "topics"
        ),
        ("clients", "topics", len(load.topics)),
        *(("brokers", *pair) for pair in cluster.config.items()),
        *(("options", *pair) for pair in load.options.items()),
        *(("faults", *pair) for pair in msgspec.structs.asdict(scenario.draw).items()),
    ]
    for topic in load.topics:
        fields += [("topic", *pair) for pair in msgspec.structs.asdict(topic).items()]
        fields += [("topic settings", *pair) for pair in topic.config.items()]
    return ((place, name, _text(value)) for place, name, value in fields)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("seed", [1, 2, 77])
def test_same_seed_draws_the_same_scenario(seed: int) -> None:
    again = draw_scenario(replace(ANYTHING, seed=seed))
    assert again == drawn(seed) != drawn(seed + 1)
    assert draw_scenario(again) == again, "drawn already"
    assert settle_schedule(replace(ANYTHING, seed=seed)) == settle_schedule(again)


@pytest.mark.parametrize("seed", [1, 2, 3, 77])
def test_another_dimension_changes_no_other_property(seed: int) -> None:
    assert ANYTHING.bounds is not None
    more = Dimension(name="log.index.interval.bytes", of="brokers", values=(1, 2))
    bounds = replace(ANYTHING.bounds, dimensions=(more, *DIMENSIONS))
    scenario = draw_scenario(replace(ANYTHING, seed=seed, bounds=bounds))
    assert scenario.cluster.config["log.index.interval.bytes"] in ("1", "2")
    assert scenario.workload == drawn(seed).workload
    assert scenario.draw == drawn(seed).draw


def test_dimension_is_drawn_only_with_the_values_that_it_names() -> None:
    for seed in FEW:
        load = drawn(seed).workload
        assert load.kind in ("group", "mixed") or "assignor" not in load.options
        assert load.kind not in ("commits", "transactions") or len(load.topics) > 1
        assert load.kind != "transactions" or (load.acks, load.isolation) == (-1, "read_committed")
        for topic in load.topics:
            is_compacted = "compact" in topic.config.get("cleanup.policy", "")
            assert is_compacted or "delete.retention.ms" not in topic.config
            assert int(topic.config["min.insync.replicas"]) <= topic.replication_factor


def test_faults_are_drawn_only_where_they_can_act() -> None:
    for seed in FEW:
        scenario = drawn(seed)
        assert scenario.draw is not None
        targets = {target for choice in scenario.draw.choices for target in choice.targets}
        faults = {choice.fault for choice in scenario.draw.choices}
        replicas = scenario.workload.topics[0].replication_factor
        assert ("follower" in targets) == (replicas > 2)
        assert ("member" in targets) == (scenario.workload.kind in ("group", "mixed"))
        assert ("transactional" in targets) == (scenario.workload.kind == "transactions")
        assert ("move_directories" in faults) == (scenario.cluster.log_dirs > 1)
        config = scenario.workload.topics[0].config
        assert ("min_isr" in faults) == (config["min.insync.replicas"] != "1")
        assert ("delete_records" in faults) == (config.get("cleanup.policy") != "compact")
        assert ("lose_answer" in faults) == (scenario.workload.acks != 0)
        if scenario.workload.client == "verifiable":
            assert not faults & {"add_partitions", "slow_poll"}


def test_saved_schedule_of_a_drawn_scenario_is_played_again(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    scenario = settle_schedule(drawn(7))
    save_schedule(path, schedule_of(scenario))
    again = with_schedule(drawn(7), load_schedule(path, drawn(7)))
    assert settle_schedule(again) == scenario


def test_smaller_schedule_is_played_in_the_same_scenario() -> None:
    stored = settle_schedule(drawn(7))
    smaller = keep_faults(schedule_of(stored), [0])
    again = settle_schedule(with_schedule(stored, smaller))
    assert len(again.faults) == 1 < len(stored.faults)
    assert (again.cluster, again.workload) == (stored.cluster, stored.workload)


@pytest.mark.parametrize(("values", "weights"), [((), ()), ((1, 2), (1.0,))])
def test_impossible_dimension_is_rejected(
    values: tuple[Value, ...], weights: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="keys: give at least one value, and a weight for each"):
        Dimension(name="keys", of="clients", values=values, weights=weights)


def test_scenario_without_bounds_is_not_drawn() -> None:
    calm = SCENARIOS["calm"]
    assert draw_scenario(calm) == calm
