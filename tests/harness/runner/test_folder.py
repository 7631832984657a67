"""The folder of a run, and what topics fit a cluster."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.runner.folder import new_run_dir
from urteil.harness.runner.stopwatch import Stopwatch
from urteil.harness.runner.topics import fitted
from urteil.harness.scenario import Scenario, TopicSpec, load_scenario
from urteil.harness.scenarios import SCENARIOS


def test_a_run_has_a_folder_of_its_own_and_latest_is_the_newest(tmp_path: Path) -> None:
    demo = SCENARIOS["demo"]
    first, second = new_run_dir(tmp_path, demo), new_run_dir(tmp_path, demo)
    assert first != second
    assert "-demo-1" in first.name
    assert (tmp_path / "latest").resolve() == second
    assert load_scenario(second) == demo


def test_topics_ask_for_no_more_replicas_than_there_are_brokers() -> None:
    topic = TopicSpec(replication_factor=3, config={"min.insync.replicas": "2", "x": "y"})
    alone = fitted(topic, 1)
    assert alone.replication_factor == 1
    assert alone.config == {"min.insync.replicas": "1", "x": "y"}
    assert fitted(topic, 5) == topic


def test_stages_add_up() -> None:
    seconds: dict[str, float] = {"load": 1.0}
    with Stopwatch(seconds)("load"):
        pass
    with Stopwatch(seconds)("stop"):
        pass
    assert seconds["load"] >= 1.0
    assert set(seconds) == {"load", "stop"}


def test_a_long_name_is_cut_as_file_systems_want_it(tmp_path: Path) -> None:
    """Of a test with long parameters, say."""
    folder = new_run_dir(tmp_path, Scenario(name="test_" + "x" * 400))
    assert folder.is_dir()
    assert load_scenario(folder).name.endswith("x" * 400)
