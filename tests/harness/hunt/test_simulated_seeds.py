"""Seeds spread over processes: what a process that dies costs, and what is reported."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from urteil.chaos.observations import LabFailure
from urteil.cli.main import exit_code, urteil
from urteil.cli.simulate import Seeds
from urteil.harness.hunt import simulated_seeds
from urteil.harness.hunt.simulated_seeds import (
    AT_ONCE,
    CRASH,
    Batch,
    Player,
    play_seeds,
    spark_player,
)
from urteil.harness.hunt.simulation import CheckError, SimulatedRun, Simulation, simulation_of
from urteil.harness.simulation_process import Child

SEEDS = range(1, 2 * AT_ONCE + 2)


def player(deadly: int, deaths: int, played: list[int]) -> Player:
    """Plays batches in turn; its process dies so often when it begins the deadly seed."""
    left = [deaths]

    def play(batches: Sequence[Batch]) -> Iterator[tuple[Batch, Simulation]]:
        for batch in batches:
            runs, code = [], 0
            for seed in batch:
                played.append(seed)
                if seed == deadly and left[0]:
                    left[0] -= 1
                    code = -signal.SIGKILL
                    break
                runs.append(SimulatedRun(seed=seed, seconds=1.0))
            yield batch, Simulation(runs=runs, exit_code=code, output="", seconds=1.0)

    return play


def test_dead_process_costs_the_seeds_that_it_had_not_finished() -> None:
    played: list[int] = []
    runs = list(play_seeds(SEEDS, player(2, 1, played)))
    assert sorted(run.seed for run in runs) == list(SEEDS)
    assert not any(run.findings for run in runs)
    assert sorted(played) == sorted([*SEEDS, 2])


def test_seed_under_which_processes_die_is_reported() -> None:
    runs = {run.seed: run for run in play_seeds(SEEDS, player(3, 9, []))}
    assert sorted(runs) == list(SEEDS)
    assert list(runs[3].findings) == [CRASH]
    assert [seed for seed, run in runs.items() if run.findings] == [3]


def unjudged(batches: Sequence[Batch]) -> Iterator[tuple[Batch, Simulation]]:
    """Plays batches; at seed 2 a check fails."""
    error = CheckError(mix="groups", check="two_owners", error="KeyError: 'm1' (rows.py, line 9)")
    for batch in batches:
        runs = [
            SimulatedRun(seed=seed, errors=[error] if seed == 2 else [], seconds=1.0)
            for seed in batch
        ]
        yield batch, Simulation(runs=runs, exit_code=0, output="", seconds=1.0)


def test_check_that_fails_is_an_error_of_the_lab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lab's own exit code, the seed, the mix, and the command that plays it again."""
    monkeypatch.setattr(simulated_seeds, "local_player", lambda *_: unjudged)
    arguments = ["simulate", "--seeds", "1..3", "--mutant", "zombie_not_fenced"]
    assert exit_code(arguments) == 255
    output = capsys.readouterr().out
    again = "urteil simulate --seeds 2 --mix groups --mutant zombie_not_fenced"
    assert "seed 2: the lab failed in two_owners, mix groups: KeyError: 'm1'" in output
    assert f"  again: {again}\n3 seeds, 0 with findings, 1 with errors of the lab" in output
    assert exit_code([*arguments, "--json"]) == 255
    rows = json.loads(capsys.readouterr().out)
    assert [row["findings"] for row in rows] == [{}, {}, {}]
    assert [row["errors"] for row in rows if row["seed"] != 2] == [[], []]
    assert rows[1]["errors"][0]["again"] == again


def test_finding_beside_an_error_of_the_lab_decides_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def play(batches: Sequence[Batch]) -> Iterator[tuple[Batch, Simulation]]:
        for batch, played in unjudged(batches):
            found = SimulatedRun(seed=1, findings={"hole": "t-0"}, seconds=1.0)
            yield batch, msgspec.structs.replace(played, runs=[found, *played.runs[1:]])

    monkeypatch.setattr(simulated_seeds, "local_player", lambda *_: play)
    assert exit_code(["simulate", "--seeds", "1..3"]) == 1


def test_child_whose_checks_failed_is_a_failure_of_the_lab() -> None:
    with pytest.raises(LabFailure, match="seed 3: hole: KeyError"):
        simulation_of(Child(4, "", "seed 3: hole: KeyError: 1", 1.0))


def test_range_of_seeds() -> None:
    assert Seeds().convert("7", None, None) == range(7, 8)
    assert Seeds().convert("7..9", None, None) == range(7, 10)


@pytest.mark.parametrize(
    "text", ["", "a..b", "5..4", "-1..3", "1..2..3", "0..1000000", "1..99999999999999999999"]
)
def test_invalid_range_of_seeds_is_rejected(text: str) -> None:
    result = CliRunner().invoke(urteil, ["simulate", "--seeds", text])
    assert result.exit_code == 2
    assert "--seeds" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--seeds'"),
        (["--seeds", "1", "--guarantee", "hole"], "--guarantee needs --shrink"),
        (["--seeds", "1..2", "--mix", "groups", "--shrink", "s.json"], "one seed and one --mix"),
        (["--seeds", "1", "--shrink", "s.json"], "one seed and one --mix"),
        (["--seeds", "1", "--schedule", __file__], "a complete run"),
    ],
)
def test_options_that_do_not_fit_are_rejected(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(urteil, ["simulate", *arguments])
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.thorough
def test_file_that_is_no_schedule_is_rejected() -> None:
    result = CliRunner().invoke(urteil, ["simulate", "--schedule", __file__])
    assert result.exit_code == 2
    assert "no schedule of a simulation" in result.output


@pytest.mark.thorough
def test_finding_is_shrunk_to_a_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    mutant = ["--mix", "groups", "--mutant", "failed_commit_is_success"]
    arguments = ["--seeds", "1", *mutant, "--shrink", str(file), "--json"]
    assert exit_code(["simulate", *arguments]) == 1
    assert json.loads(capsys.readouterr().out)["guarantee"] == "commit_went_back"
    assert exit_code(["simulate", "--schedule", str(file)]) == 1
    assert "commit_went_back" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "kind"),
    [("--mix", "mix"), pytest.param("--mutant", "mutant", marks=pytest.mark.thorough)],
)
def test_unknown_name_is_rejected_with_the_known_ones(option: str, kind: str) -> None:
    result = CliRunner().invoke(urteil, ["simulate", "--seeds", "1", option, "nothing"])
    assert result.exit_code == 2
    assert f"no {kind} is named nothing; known: " in result.output


@pytest.mark.thorough
def test_mutant_is_found_by_its_seed() -> None:
    arguments = ["--seeds", "1..2", "--mix", "replication", "--mutant", "serve_reads_beyond_hw"]
    result = CliRunner().invoke(urteil, ["simulate", *arguments, "--json"])
    rows = json.loads(result.output[result.output.index("[") :])
    assert [row["seed"] for row in rows] == [1, 2]
    assert any(row["findings"] for row in rows)


@pytest.mark.thorough
def test_spark_tasks_play_the_same_runs() -> None:
    """From the shipped package, by two local workers."""
    spread = play_seeds(range(1, AT_ONCE + 2), spark_player("local[2]", ["transactions"]))
    local = CliRunner().invoke(
        urteil, ["simulate", "--seeds", f"1..{AT_ONCE + 1}", "--mix", "transactions", "--json"]
    )
    rows = json.loads(local.output[local.output.index("[") :])
    runs = {run.seed: run for run in spread}
    assert [(row["virtual_s"], row["findings"]) for row in rows] == [
        (runs[row["seed"]].virtual_s, runs[row["seed"]].findings) for row in rows
    ]
