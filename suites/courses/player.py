"""Plays the steps of a lab at the desks of one or two clusters, and compares what they print.

A desk is a cluster with a scratch folder and the programs that run beside the steps. Every step
runs at all desks at once. A `Finding` is a wrong exit code, a missing text, or a difference.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from urteil.chaos.waiting import until
from urteil.harness.dependencies.java import utf8_locale
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.fault_server import FaultSession
from urteil.harness.kafka_tools import TOOLS, Address, tool_arguments
from urteil.suites.courses.comparison import comparable_lines, difference
from urteil.suites.courses.lab import (
    Advertise,
    Begin,
    End,
    File,
    Lab,
    Python,
    StartBrokers,
    Step,
    StopBroker,
    Tool,
    text_of,
)

TOOL_S = 150.0
UNTIL_S, POLL_S = 120.0, 0.5
STOPPED_S = 900.0


class LearnerPlace:
    """A cluster with the files of a learner. `files` is its directory; `addresses` are by user."""

    def __init__(
        self, name: str, addresses: dict[str, Address], files: Path, faults: FaultSession | None
    ) -> None:
        self.name = name
        self._addresses = addresses
        self._files = files
        self._faults = faults
        self._folder = tempfile.TemporaryDirectory(prefix="urteil-desk-")
        self._programs: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self._stopped = contextlib.ExitStack()

    def close(self) -> None:
        """End the programs, start the brokers, remove the folder."""
        for program, _ in self._programs.values():
            program.kill()
            program.wait()
        self._stopped.close()
        self._folder.cleanup()

    def play(self, step: Step) -> Output:
        """Run one step."""
        match step:
            case Tool():
                return self._play_tool(step)
            case Python(code=code):
                return self._python(code)
            case Begin(name=name, line=line):
                self._begin(name, self._argv(line, Tool(line=line)))
            case End():
                return self._end(step)
            case File(name=name, text=text):
                (self._path / name).write_text(self._fill_in(text))
            case StopBroker(broker=broker):
                assert self._faults is not None, "brokers of this cluster are not stopped"
                fault = self._faults.fault("shutdown", f"b{broker}", expiry_s=STOPPED_S)
                self._stopped.enter_context(fault)
            case StartBrokers():
                self._stopped.close()
            case Advertise(broker=broker, address=address):
                properties = self._properties(broker)
                properties.write_text(with_address(properties.read_text(), self._fill_in(address)))
        return Output(exit_code=0, lines=[])

    @property
    def _path(self) -> Path:
        return Path(self._folder.name)

    def _properties(self, broker: int) -> Path:
        return self._files / "nodes" / f"b{broker}" / "server.properties"

    def _fill_in(self, text: str) -> str:
        address = next(iter(self._addresses.values()))
        names = {
            "bootstrap": address.bootstrap,
            "zookeeper": address.zookeeper,
            "folder": str(self._path),
            "log1": str(self._files / "nodes" / "b1" / "data"),
        }
        if "$listener1" in text:
            names["listener1"] = listener_address(self._properties(1).read_text())
        return string.Template(text).safe_substitute(names)

    def _argv(self, line: str, step: Tool) -> list[str]:
        name, *args = shlex.split(self._fill_in(line))
        call = TOOLS[name].call(step.release)
        assert call is not None, f"Kafka {step.release} has no {name}"
        address = self._addresses[step.user] if step.user else next(iter(self._addresses.values()))
        return kafka_tool(call.main_class, tool_arguments(call, args, address), step.release)

    def _play_tool(self, step: Tool) -> Output:
        argv, stdin = self._argv(step.line, step), self._fill_in(step.stdin)
        if not step.until:
            return _run(argv, stdin)

        def is_as_expected(output: Output) -> bool:
            return not list(problems(step, output))

        return until(lambda: _run(argv, stdin), is_as_expected, deadline_s=UNTIL_S, poll_s=POLL_S)

    def _python(self, code: str) -> Output:
        address = next(iter(self._addresses.values()))
        servers = "', '".join(address.bootstrap.split(","))
        return _run([sys.executable, "-c", code.replace("localhost:9092", servers)], "")

    def _begin(self, name: str, argv: list[str]) -> None:
        printed = self._path / f"{name}.out"
        with printed.open("wb") as out, (self._path / f"{name}.err").open("wb") as errors:
            program = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=_environment()
            )
        self._programs[name] = (program, printed)

    def _end(self, step: End) -> Output:
        """The lines of all named programs, with the exit code of the last one."""
        programs = [self._programs.pop(name) for name in step.names]

        def line_count() -> int:
            return sum(printed.read_bytes().count(b"\n") for _, printed in programs)

        try:
            until(line_count, lambda count: count >= step.count, deadline_s=UNTIL_S, poll_s=POLL_S)
        finally:
            for program, _ in programs:
                program.send_signal(signal.SIGTERM)
            for program, _ in programs:
                program.wait(TOOL_S)
        lines = [line for _, printed in programs for line in printed.read_text().splitlines()]
        # Each of the named programs has lines: the members of a group shared the partitions.
        busy = sum(printed.stat().st_size > 0 for _, printed in programs)
        return Output(exit_code=programs[-1][0].returncode, lines=sorted(lines), busy=busy)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a step, as comparable `lines` and unchanged; the end of standard error. `busy`
    is the number of programs that printed."""

    exit_code: int
    lines: list[str]
    printed: str = ""
    errors: str = ""
    busy: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """The defect of a step: at one desk, or between two."""

    step: Step
    text: str

    def __str__(self) -> str:
        return f"{text_of(self.step)}\n    {self.text}"


@dataclass(slots=True)
class LabResult:
    """A played lab: its time, its commands, and those whose outputs differ for a reason."""

    lab: Lab
    seconds: float = 0.0
    commands: int = 0
    equal: int = 0
    reasons: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def play_lab(lab: Lab, desks: Sequence[LearnerPlace]) -> LabResult:
    """Play the steps in order, each at all desks at once."""
    result, began = LabResult(lab), time.monotonic()
    with ThreadPoolExecutor(len(desks)) as pool:
        for step in lab.steps:
            outputs = list(pool.map(lambda desk, step=step: desk.play(step), desks))
            if isinstance(step, Tool | End | Python):
                result.commands += 1
                _judge(step, dict(zip(desks, outputs, strict=True)), result)
    result.seconds = time.monotonic() - began
    return result


def _judge(
    step: Tool | End | Python, outputs: dict[LearnerPlace, Output], result: LabResult
) -> None:
    findings = [
        Finding(step, f"{desk.name}: {problem}")
        for desk, output in outputs.items()
        for problem in problems(step, output)
    ]
    lines = [output.lines for output in outputs.values()]
    is_ordered = not isinstance(step, End) and step.is_ordered
    differences = difference(*lines, is_ordered=is_ordered) if len(lines) == 2 else []
    if differences and isinstance(step, Tool) and step.differs:
        result.reasons.append(f"`{text_of(step)}`: {step.differs}")
    elif differences:
        findings.append(Finding(step, "\n    ".join(differences)))
    else:
        result.equal += 1
    result.findings += findings


def problems(step: Tool | End | Python, output: Output) -> Iterator[str]:
    """The defects of the output of one desk."""
    text = "\n".join(output.lines)
    if isinstance(step, End):
        if len(output.lines) != step.count or len(set(output.lines)) != step.count:
            distinct = len(set(output.lines))
            yield f"{len(output.lines)} lines, {distinct} distinct ones, in place of {step.count}"
        if output.busy != len(step.names):
            yield f"{output.busy} of {len(step.names)} programs printed lines"
        return
    expected = step.exit_code if isinstance(step, Tool) else 0
    if output.exit_code != expected:
        yield f"exit code {output.exit_code} in place of {expected}: {text}\n{output.errors}"
    missing = [part for part in step.shows if part not in text and part not in output.errors]
    if missing:
        yield f"{missing} is not in: {text}\n{output.errors}"
    if isinstance(step, Tool) and step.both_racks:
        yield from one_rack_alone(output.printed)
    if isinstance(step, Tool) and step.count is not None and len(output.lines) != step.count:
        yield f"{len(output.lines)} lines in place of {step.count}: {text}"


def listener_address(properties: str) -> str:
    """HOST:PORT that a broker binds for clients, of its property file."""
    match = re.search(r"^listeners=.*?CLIENT://([^,\n]+)", properties, re.MULTILINE)
    assert match, f"no listener CLIENT in: {properties}"
    return match[1]


def with_address(properties: str, address: str) -> str:
    """A broker's property file with another address for clients."""
    pattern = re.compile(r"^(advertised\.listeners=.*?CLIENT://)[^,\n]+", re.MULTILINE)
    changed, count = pattern.subn(rf"\g<1>{address}", properties)
    assert count == 1, f"no advertised listener CLIENT in: {properties}"
    return changed


def one_rack_alone(described: str) -> Iterator[str]:
    """Partitions of six brokers in two racks, 1 to 3 and 4 to 6, whose replicas are all in one
    rack."""
    for replicas in re.findall(r"Replicas: ([\d,]+)", described):
        if len({int(broker) > 3 for broker in replicas.split(",")}) == 1:
            yield f"replicas {replicas} are in one rack"


def _run(argv: list[str], stdin: str) -> Output:
    done = subprocess.run(
        argv,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TOOL_S,
        check=False,
        env=_environment(),
    )
    lines = comparable_lines(done.stdout)
    return Output(
        exit_code=done.returncode, lines=lines, printed=done.stdout, errors=done.stderr[-4000:]
    )


def _environment() -> dict[str, str]:
    return {**os.environ, **utf8_locale()}
