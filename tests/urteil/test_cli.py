"""The command line: usage errors, exit codes and output."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.harness.verify.example_runs import ONE, healthy, judged
from tests.waiting import LONG_S, until
from urteil.cli import listing
from urteil.cli.main import exit_code
from urteil.harness.run.heal_request import HealRequests
from urteil.harness.verify import synthetic

URTEIL = (sys.executable, "-m", "urteil")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run dmeo", "did you mean demo?"),
        ("run demo --mutant no_crc", "did you mean no_crc_check?"),
        ("run demo --mutant no_crc_check --target kafka", "changes our own broker"),
        ("run demo --target kafak", "unknown target 'kafak'"),
        ("run demo --sed 1", "--seed"),
        ("run demo --schedule none.toml", "none.toml cannot be read"),
        ("schedule dmeo", "did you mean demo?"),
        ("faults check latencie", "did you mean latency"),
        ("faults check pause --cluster c --target kafka", "leave them out"),
        ("faults hold pause -o x --cluster nobody", "write NAME=VALUE"),
        ("faults hold lose_answer --apis Fetch --cluster nobody", "'--api'"),
        ("faults hold pause --cluster nobody", "no cluster nobody stands"),
        ("heal", "name what to heal: RUN"),
        ("heal nothing-here", "no run named 'nothing-here'"),
        ("heal --cluster nobody", "no cluster nobody stands"),
        ("heal --target urteil", "only external:"),
        ("shrink nothing-here", "no run named 'nothing-here'"),
        ("mutants no_crc", "did you mean no_crc_check?"),
        ("bugs kafka-636", "did you mean kafka-6361"),
        ("mutants --target kafka", "change our own broker, not --target kafka"),
        ("mutants --suite deliver", "no suite 'deliver'; did you mean delivery?"),
        ("night --targets urteil,kafak", "unknown target 'kafak'"),
        ("night --targets mix:kafka,urteil", "a mix has commas of its own: use --target"),
        ("night --target kafak", "unknown target 'kafak'"),
        ("night --target external:none.toml", "none.toml cannot be read"),
        ("night --target mix:kafka,urteil --mutant no_crc_check", "change our own broker"),
        ("night --history pyproject.toml", "--history pyproject.toml: file is not a database"),
        ("import pyproject.toml", "pyproject.toml: "),
        ("cluster up --name a/b", "'a/b' is not a name"),
        ("night --weight calm", "write NAME=W"),
        ("night --weight clam=2", "did you mean calm"),
        ("night --mutant no_crc", "did you mean no_crc_check?"),
        ("night --mutant no_crc_check --targets kafka", "change our own broker"),
        ("night --hours nan", "nan is not a number"),
        ("night --scenario dmeo", "did you mean demo?"),
        ("run demo --rate nan", "nan is not a number"),
        ("run demo --app cat", "--app needs the workload pipeline"),
        ("run pipeline --records 5", "--records needs the workload bulk"),
        ("run pipeline --promise twice", "'at-least-once'"),
        ("run demo --client sarama", "'confluent-kafka'"),
        ("run demo --client java", "no client of demo can use it; they can use kafka-python"),
        ("run demo --rate -1", "not in the range"),
        ("run demo --brokers 0", "not in the range"),
        ("run demo --engine foo", "'auto', 'duckdb', 'spark'"),
        ("run demo --engine duckdb --master local[2]", "leave out --master local[2], or use"),
        ("verify latest --engine duckdb --master local[2]", "leave out --master local[2]"),
        ("verify nothing-here", "no run named 'nothing-here'"),
        ("report nothing-here", "no run named 'nothing-here'"),
        ("list bogus", "'scenarios'"),
        ("cluster up --target foo", "unknown target 'foo'"),
        ("cluster up --mix kafka,foo", "unknown target 'foo'"),
        ("cluster up --mix kafka,", "unknown target ''"),
        ("cluster up --mix kafka,urteil --brokers 3", "the mix names 2 brokers"),
        ("cluster up --mix kafka,urteil --target kafka", "leave --target kafka out"),
        ("run demo --target mix:kafka,mix:urteil", "unknown target 'mix:urteil'"),
        ("run demo --target mix:kafka,urteil --brokers 3", "the mix names 2 brokers"),
        ("cluster down --name nobody", "no cluster nobody stands"),
        ("cluster status --name nobody", "no cluster nobody stands"),
        ("cluster up --acl", "add --sasl scram, --sasl plain, or --tls"),
        ("cluster up --json --export", "choose one"),
        ("cluster up --port 65530", "choose 65529 or less"),
        ("cluster up --port 0", "not in the range"),
        ("cluster up --racks a,,b", "an empty name"),
        ("cluster up --racks a,b,c,d", "4 racks for 3 brokers"),
        ("cluster up --first-broker-id 999", "ids end at 1000: choose at most 998"),
        ("cluster up --first-broker-id -1", "not in the range"),
        ("cluster up --sasl gssapi", "'scram', 'plain'"),
        ("cluster up --set num.partitions", "write KEY=VALUE"),
        ("cluster up --set =3", "write KEY=VALUE"),
        ("cluster up --set num.partitions=3 --set num.partitions=4", "twice: '3' and '4'"),
        ("cluster up --set broker.id=7", "--first-broker-id decides it"),
        ("cluster up --set listeners=PLAINTEXT://:1", "--port, --tls and --sasl change them"),
        ("cluster up --set log.dirs=/data", "the lab decides where its files lie"),
        ("cluster up --tls --acl --set super.users=User:x", "--tls, --sasl and --acl decide it"),
        ("cluster up --set num.partition=3", "did you mean num.partitions?"),
        ("cluster up --set num.partitions=many", "--set num.partitions=many: Invalid value many"),
        ("cluster up --set log.retention.hours=", "--set log.retention.hours=: Invalid value"),
        ("cluster up --set num.io.threads=0", "Value must be at least 1"),
        ("cluster up --target kafka --set num.partition=3", "did you mean num.partitions?"),
        ("cluster up --target kafka --set num.io.threads=0", "Value must be at least 1"),
        ("bogus", "No such command"),
    ],
)
def test_wrong_usage_exits_254_and_names_the_mend(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(line.split()) == 254
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("line", ["run demo", "verify latest", "night --hours 0"])
def test_wrong_judge_limit_is_rejected_before_the_run(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("URTEIL_JUDGE_LIMIT_S", "soon")
    assert exit_code(line.split()) == 254
    assert "URTEIL_JUDGE_LIMIT_S=soon is not a number" in capsys.readouterr().err


def test_lab_failure_exits_255(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setitem(listing.KINDS, "faults", fail)
    assert exit_code(["list", "faults"]) == 255
    message = capsys.readouterr().err
    assert "the lab failed: RuntimeError: nobody foresaw it" in message
    assert "Traceback" not in message


def test_unusable_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    words = ["run", "calm", "--engine", "duckdb", "--out", str(tmp_path / "file" / "runs")]
    assert exit_code(words) == 255
    assert capsys.readouterr().err.strip().endswith("file/runs: Not a directory")


COMMANDS = ("verify RUN", "report RUN", "report RUN --format issue", "explain RUN p1/1",
            "explain RUN urteil-0@1", "compare RUN RUN", "export RUN", "shrink RUN",
            "heal RUN")  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_damaged_run_file_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut, of another version of the lab, or not there at all."""
    files = {"scenario.json": '{"name": ', "run.json": '{"run": 5}', "result.json": "{}"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert exit_code(command.replace("RUN", str(tmp_path)).split()) == 254
    message = capsys.readouterr().err.splitlines()
    assert len([line for line in message if line.startswith("Error: ")]) == 1
    assert any(name in message[-1] for name in files)
    assert "cannot be read" in message[-1]


def test_run_without_evidence_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    shutil.rmtree(tmp_path / "evidence" / "polls")
    assert exit_code(["export", str(tmp_path)]) == 0
    assert "has no evidence/polls: the export is incomplete" in capsys.readouterr().err
    assert exit_code(["shrink", str(tmp_path)]) == 254
    shutil.rmtree(tmp_path / "evidence")
    for words, message in (
        (["export"], "nothing to export"),
        (["explain", "p1/1"], "no evidence of"),
    ):
        assert exit_code([words[0], str(tmp_path), *words[1:]]) == 254
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "kind", ["scenarios", "faults", "guarantees", "mutants", "bugs", "targets"]
)
def test_lists_are_objects_with_name_and_about(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["list", kind, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed
    for row in listed:
        assert row["name"]
        assert row["about"]
        if kind == "mutants":
            assert row["scenario"]
            assert row["guarantee"]


def test_drawn_scenario_is_printed_and_drawn_again_from_its_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of a schedule has the seed of everything else."""
    assert exit_code(["schedule", "anything", "--seed", "2"]) == 0
    printed = capsys.readouterr().out
    assert "  urteil: partitions=2, min.insync.replicas=1" in printed
    assert "  permits: retention or administrators delete records" in printed
    assert exit_code(["schedule", "anything", "--seed", "2", "--json"]) == 0
    (tmp_path / "drawn.json").write_text(capsys.readouterr().out)
    assert exit_code(["schedule", "anything", "--schedule", str(tmp_path / "drawn.json")]) == 0
    again = capsys.readouterr().out
    assert again.splitlines()[:9] == printed.splitlines()[:9]


def test_printed_schedule_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["schedule", "chaos", "--seed", "7", "--json"]) == 0
    drawn = capsys.readouterr().out
    (tmp_path / "drawn.json").write_text(drawn)
    words = ["schedule", "chaos", "--schedule", str(tmp_path / "drawn.json")]
    assert exit_code([*words, "--json"]) == 0
    assert capsys.readouterr().out == drawn
    assert exit_code(words) == 0
    assert capsys.readouterr().out.startswith("chaos, seed 7: 6 faults in ")


@pytest.mark.thorough
def test_run_without_traffic_exits_2(tmp_path: Path) -> None:
    words = ("run", "calm", "--rate", "0", "--duration-s", "4", "--engine", "duckdb", "--json")
    done = subprocess.run(
        [*URTEIL, *words, "--out", str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    result = json.loads(done.stdout)
    assert result["verdict"] == "UNKNOWN"
    assert result["reasons"]
    assert (tmp_path / "latest" / "report.html").exists()
    assert (tmp_path / "latest" / "junit.xml").exists()


@pytest.mark.parametrize(
    ("number", "engine"),
    [
        (signal.SIGINT, "duckdb"),
        pytest.param(signal.SIGTERM, "duckdb", marks=pytest.mark.thorough),
        pytest.param(signal.SIGKILL, "spark", marks=pytest.mark.thorough),
    ],
)
def test_interrupted_lab_leaves_nothing_running(tmp_path: Path, number: int, engine: str) -> None:
    words = ("run", "leader-crash", "--rate", "60", "--engine", engine, "--out", str(tmp_path))
    lab = subprocess.Popen([*URTEIL, *words], preexec_fn=hear_ctrl_c)
    journal = tmp_path / "latest" / "faults.jsonl"
    until(journal.exists, "no fault began")
    began = [process for process in belonging_to(tmp_path) if process.pid != lab.pid]
    lab.send_signal(number)
    assert lab.wait(LONG_S) == (255 if number != signal.SIGKILL else -number)
    _, alive = psutil.wait_procs(began, timeout=LONG_S)
    running = [
        process for process in alive if process.status() != psutil.STATUS_ZOMBIE
    ]  # not reaped yet
    assert [process.cmdline() for process in running] == []
    words = ("verify", str(tmp_path / "latest"), "--engine", "duckdb", "--json")
    judged = subprocess.run([*URTEIL, *words], capture_output=True, text=True)
    result = json.loads(judged.stdout)
    assert (judged.returncode, result["verdict"]) == (2, "UNKNOWN")
    assert "the run did not come to its end" in result["reasons"]
    assert result["counts"]["acknowledged"] > 0


def hear_ctrl_c() -> None:
    """As in a terminal: what a script starts in its background ignores SIGINT, tests too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_fault_list_shows_targets_options_and_expiry(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(["list", "faults", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        for field in ("family", "selectors", "proof", "expiry", "runtimes", "targets"):
            assert row[field], f"{row['name']} says nothing of its {field}"
        assert "s after its planned end, or when the lab dies" in row["expiry"]


def belonging_to(out: Path) -> list[psutil.Process]:
    """The processes that name a folder of `out`, and their children."""
    processes = {}
    for process in psutil.process_iter():
        try:
            if any(str(out) in word for word in process.cmdline()):
                family = [process, *process.children(recursive=True)]
                processes.update({process.pid: process for process in family})
        except psutil.NoSuchProcess:
            continue
    return list(processes.values())


def test_running_run_cannot_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Evidence collected now would lack the rest, and the lab would take it for its own."""
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    with HealRequests(tmp_path).accept():
        assert exit_code(["verify", str(tmp_path), "--engine", "duckdb"]) == 254
    assert "is being played" in capsys.readouterr().err


def test_unwritable_summary_does_not_fail_a_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["night", "--hours", "0", "--out", str(tmp_path), "--summary", "/nowhere/s.md"]
    assert exit_code(words) == 2
    assert "--summary /nowhere/s.md: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["jepsen", "elsewhere", "standing:default"])
def test_imported_run_cannot_be_shrunk(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to play: three runs without a cluster would say that it does not come."""
    scenario = msgspec.structs.replace(synthetic.scenario(ONE), target=target)
    tables = healthy()
    tables["reads"][0]["intact"] = False
    assert judged(tmp_path, tables, scenario=scenario).verdict == "FAIL"
    assert exit_code(["shrink", str(tmp_path)]) == 254
    assert "cannot be played again" in capsys.readouterr().err
