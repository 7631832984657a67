"""The folder of a run, and topics that fit a cluster."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from urteil.harness.run.folder import new_run_dir
from urteil.harness.run.topics import fit_topic
from urteil.harness.scenario import Scenario, TopicSpec, load_scenario
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.stopwatch import Spent, Stopwatch, lines


def test_run_has_its_own_folder_and_latest_is_the_newest(tmp_path: Path) -> None:
    demo = SCENARIOS["demo"]
    first, second = new_run_dir(tmp_path, demo), new_run_dir(tmp_path, demo)
    assert first != second
    assert "-demo-1" in first.name
    assert (tmp_path / "latest").resolve() == second
    assert load_scenario(second) == demo


def test_topics_ask_for_no_more_replicas_than_there_are_brokers() -> None:
    topic = TopicSpec(replication_factor=3, config={"min.insync.replicas": "2", "x": "y"})
    alone = fit_topic(topic, 1)
    assert alone.replication_factor == 1
    assert alone.config == {"min.insync.replicas": "1", "x": "y"}
    assert fit_topic(topic, 5) == topic


def test_repeated_phase_adds_up() -> None:
    spent = [Spent(phase="load", seconds=1.0, processor_seconds=0.5)]
    seconds: dict[str, float] = {}
    watch = Stopwatch(seconds, spent)
    with watch("load"), watch("load/faults"):
        pass
    with suppress(ZeroDivisionError), watch("stop"):
        raise ZeroDivisionError
    assert [phase.phase for phase in spent] == ["load", "load/faults", "stop"]
    assert seconds == {"load": spent[0].seconds, "stop": spent[2].seconds}
    assert spent[0].seconds >= 1.0
    assert spent[0].processor_seconds >= 0.5


def test_table_of_phases_indents_parts_and_adds_up_phases() -> None:
    seconds_by_phase = [("setup", 2.0), ("setup/cluster", 1.5), ("load", 30.25)]
    spent = [Spent(phase=name, seconds=s, processor_seconds=s / 2) for name, s in seconds_by_phase]
    assert list(lines(spent)) == [
        "phase                         seconds   processor seconds",
        "setup                            2.00                1.00",
        "  cluster                        1.50                0.75",
        "load                            30.25               15.12",
        "all                             32.25               16.12",
    ]


def test_long_run_name_is_cut_to_the_file_systems_limit(tmp_path: Path) -> None:
    """Of a test with long parameters, say."""
    folder = new_run_dir(tmp_path, Scenario(name="test_" + "x" * 400))
    assert folder.is_dir()
    assert load_scenario(folder).name.endswith("x" * 400)
