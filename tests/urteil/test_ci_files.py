"""The workflows in compose/ci parse, and call existing commands."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from urteil.cli.main import urteil

CI = Path(__file__).parents[2] / "compose" / "ci"


def _commands(text: str) -> list[list[str]]:
    """Every call of urteil in a file, its words after the program."""
    flat = re.sub(r"\n\s+--", " --", text)
    return [shlex.split(call) for call in re.findall(r"\.venv/bin/urteil ([^\n]*)", flat)]


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml", "urteil-night.service"])
def test_ci_files_call_existing_commands_and_options(name: str) -> None:
    commands = _commands((CI / name).read_text())
    assert commands
    for words in commands:
        command = urteil.commands[words[0]]
        command.make_context(words[0], [*words[1:], "--help"][:-1])


def test_workflows_are_complete() -> None:
    github: dict[Any, Any] = yaml.safe_load((CI / "github.yml").read_text())
    steps = github["jobs"]["night"]["steps"]
    assert next(step["uses"] for step in steps if "uses" in step) == "actions/checkout@v4"
    assert github["permissions"] == {"contents": "read"}
    gitlab: dict[Any, Any] = yaml.safe_load((CI / "gitlab.yml").read_text())
    assert gitlab["night"]["artifacts"]["when"] == "always"
    for name, section in (("service", "Service"), ("timer", "Timer")):
        unit = configparser.ConfigParser(strict=False)
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read(CI / f"urteil-night.{name}")
        assert unit.has_section(section)


def test_wrong_option_is_detected() -> None:
    with pytest.raises(click.UsageError):
        urteil.commands["night"].make_context("night", ["--never"])
