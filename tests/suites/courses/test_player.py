"""Judgement of steps: each expectation of a lab can fail."""

from __future__ import annotations

import pytest

from urteil.harness.kafka_tools import TOOLS
from urteil.suites.courses.lab import Begin, End, Tool, text_of
from urteil.suites.courses.labs import ALL
from urteil.suites.courses.player import Output, listener_address, problems, with_address

LIST = Tool(line="kafka-topics --list", shows=("a",), count=1)


@pytest.mark.parametrize(
    ("step", "output", "problem"),
    [
        (LIST, Output(exit_code=1, lines=["a"]), "exit code 1 in place of 0"),
        (LIST, Output(exit_code=0, lines=["b"]), "['a'] is not in: b"),
        (LIST, Output(exit_code=0, lines=["a", "b"]), "2 lines in place of 1"),
        (Tool(line="kafka-topics --list", exit_code=1), Output(exit_code=0, lines=[]),
         "exit code 0 in place of 1"),
        (Tool(line="kafka-topics --describe", both_racks=True),
         Output(exit_code=0, lines=[], printed="Replicas: 1,3,2\n"), "replicas 1,3,2 are in one"),
        (End(names=("x", "y"), count=2), Output(exit_code=130, lines=["a", "a"], busy=2),
         "2 lines, 1 distinct ones, in place of 2"),
        (End(names=("x", "y"), count=1), Output(exit_code=130, lines=["a"], busy=1),
         "1 of 2 programs printed lines"),
    ],
)  # fmt: skip
def test_unmet_expectation_is_a_problem(step: Tool | End, output: Output, problem: str) -> None:
    assert problem in "; ".join(problems(step, output))


@pytest.mark.parametrize(
    ("step", "output"),
    [
        (LIST, Output(exit_code=0, lines=["a"])),
        (LIST, Output(exit_code=0, lines=["x"], errors="WARN a")),
        (Tool(line="kafka-topics --describe", both_racks=True),
         Output(exit_code=0, lines=[], printed="Replicas: 1,4,2\n")),
        (End(names=("x", "y"), count=2), Output(exit_code=130, lines=["a", "b"], busy=2)),
    ],
)  # fmt: skip
def test_met_expectation_is_no_problem(step: Tool | End, output: Output) -> None:
    assert list(problems(step, output)) == []


def test_labs_have_unique_names_and_lines_of_known_tools() -> None:
    assert len({lab.name for lab in ALL}) == len(ALL)
    lines = [step for lab in ALL for step in lab.steps if isinstance(step, Tool | Begin)]
    unknown = [text_of(step) for step in lines if step.line.split()[0] not in TOOLS]
    assert unknown == []


PROPERTIES = """broker.id=1
listeners=CLIENT://127.0.1.1:9,INTERNAL://127.0.1.1:8
advertised.listeners=CLIENT://127.0.2.1:9,INTERNAL://b1:8
"""


def test_address_of_clients_alone_is_replaced() -> None:
    changed = with_address(PROPERTIES, listener_address(PROPERTIES))
    assert changed == PROPERTIES.replace("127.0.2.1", "127.0.1.1")
