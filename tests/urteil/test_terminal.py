"""Progress on a terminal, and shells that complete."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from urteil.cli.main import exit_code
from urteil.cli.progress import Progress, progress


def test_terminal_shows_phase_faults_rates_and_errors(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    shown = Progress(console, duration_s=30.0)
    (tmp_path / "journal").mkdir()
    journal = tmp_path / "journal" / "p1.jsonl"
    journal.write_text('["send",0,1]\n["ok",0,2]\n["info",1,2]\n["ok",')
    for line in (f"run {tmp_path}", "3 brokers ready after 2.8 s", "crash b1 acts: pid 7 gone",
                 "pause [b]2 acts: stopped"):  # fmt: skip
        shown.print_line(line)
    line = shown.__rich__().plain
    assert line.startswith("load 0 s  30 s of load left")
    assert "1 ok  1 unknown  crash b1  pause [b]2" in line
    with journal.open("a") as more:
        more.write('1,3]\n["fail",2,3]\n')
    shown.print_line("crash b1 healed")
    line = shown.__rich__().plain
    assert "1 failed  2 ok  1 unknown" in line
    assert "crash" not in line
    shown.print_line("judging")
    assert shown.__rich__().plain.startswith("judging")


def test_output_without_a_terminal_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(30.0, quiet=False) as say:
        say("run [red]x[/]")
    assert capsys.readouterr().err == "run [red]x[/]\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_exists_for_every_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["completion", shell]) == 0
    assert "_URTEIL_COMPLETE" in capsys.readouterr().out


def test_names_are_completed() -> None:
    env = os.environ | {"_URTEIL_COMPLETE": "bash_complete", "COMP_WORDS": "urteil run leader-c",
                        "COMP_CWORD": "2"}  # fmt: skip
    urteil = Path(sys.executable).with_name("urteil")
    done = subprocess.run([urteil], env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout.splitlines() == ["plain,leader-crash"]
