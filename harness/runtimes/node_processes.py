"""Processes of this machine as nodes: started, watched, signalled and limited by name."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from urteil.chaos.observations import LabFailure, Limits, NodeState, NodeStatus
from urteil.chaos.waiting import until
from urteil.harness.dependencies.java import utf8_locale
from urteil.harness.reaper import VARIABLE
from urteil.harness.runtimes.cpu_throttle import CpuThrottle
from urteil.harness.runtimes.false_clocks import remove_dead_clocks
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.stack_dumps import DumpSource, request_dump

POLL_S = 0.01
KILL_DEADLINE_S = 10.0


@dataclass(slots=True)
class _Node:
    process: subprocess.Popen[bytes]
    starts: int = 1
    paused: bool = False
    ended_by_us: bool = False
    throttle: CpuThrottle | None = None


class NodeProcesses:
    """Nodes, each in a process group of its own. Implements `Nodes` without disks and containers.

    Output goes to the file `<node>.log` of the folder `logs`, appended over restarts. Each process
    carries the `token` of a reaper.
    """

    def __init__(self, logs: Path, token: str) -> None:
        self._logs = logs
        self._logs.mkdir(parents=True, exist_ok=True)
        self._token = token
        self._nodes: dict[str, _Node] = {}
        self._lock = threading.RLock()

    def _prefix(self, node: str) -> Sequence[str]:
        """The prefix of the command line of a node."""
        return ()

    def start(self, node: str, spec: NodeSpec) -> NodeStatus:
        """Start a dead node, with this process's environment and its own variables in addition."""
        if node in self._nodes and not self.is_alive(node):
            self.restore_cpu(node)  # ends a throttle of the previous process
        with self._lock:
            old = self._nodes.get(node)
            if old is not None and old.process.poll() is None:
                raise LabFailure(f"{node} runs already")
            starts = old.starts + 1 if old else 1
            self._nodes[node] = _Node(self._spawn(node, spec), starts)
            return self.status(node)

    def _spawn(self, node: str, spec: NodeSpec) -> subprocess.Popen[bytes]:
        env = {**os.environ, **utf8_locale(), VARIABLE: self._token, **spec.env}
        remove_dead_clocks(env)
        with (self._logs / f"{node}.log").open("ab") as log:
            return subprocess.Popen(
                [*self._prefix(node), *spec.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=spec.cwd,
                start_new_session=True,
            )

    def status(self, node: str) -> NodeStatus:
        with self._lock:
            node_state = self._nodes.get(node)
            if node_state is None:
                return NodeStatus(node=node, state=NodeState.DEAD, pid=None)
            code = node_state.process.poll()
            state = NodeState.DEAD
            if code is None:
                state = NodeState.PAUSED if node_state.paused else NodeState.RUNNING
            return NodeStatus(
                node=node,
                state=state,
                pid=node_state.process.pid,
                exit_code=code,
                starts=node_state.starts,
            )

    def is_alive(self, node: str) -> bool:
        return self.status(node).state is not NodeState.DEAD

    def kill(self, node: str) -> NodeStatus:
        """SIGKILL the node's process group; returns when its process is gone."""
        with self._lock:
            state = self._node_state(node)
            state.ended_by_us = state.ended_by_us or state.process.poll() is None
        _signal_group(state.process, signal.SIGKILL)
        state.process.wait(KILL_DEADLINE_S)
        return self.status(node)

    def stop(self, node: str, *, deadline_s: float) -> NodeStatus:
        with self._lock:
            state = self._node_state(node)
            state.ended_by_us = state.ended_by_us or state.process.poll() is None
        if state.paused:
            self.resume(node)
        _signal_group(state.process, signal.SIGTERM)
        try:
            state.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            pid = state.process.pid  # its log then has a stack dump
            request_dump(DumpSource(name=node, pid=pid, output=partial(self.log, node)))
            return self.kill(node)
        return self.status(node)

    def pause(self, node: str) -> NodeStatus:
        """SIGSTOP; returns when the process is stopped."""
        state = self._node_state(node)
        with self._lock:
            _signal_group(state.process, signal.SIGSTOP)
            state.paused = True
        self._await_process(node, state, lambda state: state == psutil.STATUS_STOPPED)
        return self.status(node)

    def resume(self, node: str) -> NodeStatus:
        state = self._node_state(node)
        with self._lock:
            _signal_group(state.process, signal.SIGCONT)
            state.paused = False
        self._await_process(node, state, lambda state: state != psutil.STATUS_STOPPED)
        return self.status(node)

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        with self._lock:
            state = self._node_state(node)
            if state.process.poll() is None:
                state.ended_by_us = allowed

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        """By SIGSTOP and SIGCONT, ten times a second. `throttled` counts the observed stops."""
        self.restore_cpu(node)
        state = self._node_state(node)
        process = psutil.Process(state.process.pid)

        def signal_it(number: int) -> None:
            with self._lock:  # a paused node stays paused
                if not state.paused:
                    _signal_group(state.process, number)

        def is_stopped() -> bool:
            try:
                return bool(process.status() == psutil.STATUS_STOPPED)
            except psutil.NoSuchProcess:
                return False

        state.throttle = CpuThrottle(cpus, signal_it, is_stopped)
        return self.cpu_throttling(node)

    def restore_cpu(self, node: str) -> Limits:
        state = self._node_state(node)
        if state.throttle is not None:
            state.throttle.end()
            state.throttle = None
        return self.cpu_throttling(node)

    def cpu_throttling(self, node: str) -> Limits:
        throttle = self._node_state(node).throttle
        if throttle is None:
            return Limits(node=node, cpus=None, memory_mb=None)
        return Limits(
            node=node,
            cpus=throttle.share,
            memory_mb=None,
            throttled=throttle.throttled,
            periods=throttle.periods,
        )

    def local_pid(self, node: str) -> int:
        state = self._node_state(node)
        if state.process.poll() is not None:
            raise LabFailure(f"{node} does not run")
        return state.process.pid

    def unexpected_ends(self) -> list[NodeStatus]:
        with self._lock:
            return [
                self.status(node)
                for node, state in self._nodes.items()
                if state.process.poll() is not None and not state.ended_by_us
            ]

    def log(self, node: str) -> str:
        log = self._logs / f"{node}.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def close(self) -> None:
        """Kill every node. Repeatable."""
        with self._lock:
            for state in self._nodes.values():
                state.ended_by_us = True
                _signal_group(state.process, signal.SIGKILL)
            for state in self._nodes.values():
                state.process.wait(KILL_DEADLINE_S)

    def _node_state(self, node: str) -> _Node:
        state = self._nodes.get(node)
        if state is None:
            raise LabFailure(f"{node} was never started")
        return state

    def _await_process(self, node: str, state: _Node, reached: Callable[[str], bool]) -> None:
        """Wait until the process has reached a state, or has ended."""

        def is_over() -> bool:
            try:
                ended = state.process.poll() is not None
                return ended or reached(psutil.Process(state.process.pid).status())
            except psutil.NoSuchProcess:
                return True

        if not until(is_over, deadline_s=KILL_DEADLINE_S, poll_s=POLL_S):
            raise LabFailure(f"{node} does not react to a stop or continue signal")


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal the group of a process that is not reaped yet (so its id cannot be another's)."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
