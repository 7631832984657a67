"""An engine of the lab's own that stays until it is stopped: `urteil engine start|stop|status`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from urteil.harness.runtimes.containers.own_engine import STOP_S, start_engine_process
from urteil.harness.scenario import save


class StandingEngine(msgspec.Struct, frozen=True, kw_only=True):
    """The state file of the engine. `keeper_began` guards against reused pids."""

    url: str
    data: str
    log: str
    keeper: int
    keeper_began: float


def start(report: Callable[[str], None]) -> StandingEngine:
    """The standing engine, started if there is none. Raises MissingDependency when that fails."""
    if running := find():
        return running
    process, started = start_engine_process(report, stays=True)
    engine = StandingEngine(
        url=started.url,
        data=started.data,
        log=started.log,
        keeper=process.pid,
        keeper_began=psutil.Process(process.pid).create_time(),
    )
    _file().parent.mkdir(parents=True, exist_ok=True)
    save(_file(), engine)
    return engine


def stop() -> bool:
    """End the engine with its containers and networks. False when there was none."""
    engine = find()
    if engine is None:
        return False
    process = psutil.Process(engine.keeper)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except psutil.TimeoutExpired:
        process.kill()
    _file().unlink(missing_ok=True)
    return True


def find() -> StandingEngine | None:
    """The standing engine, if its process lives."""
    try:
        engine = msgspec.json.decode(_file().read_bytes(), type=StandingEngine)
        process = psutil.Process(engine.keeper)
        is_same = abs(process.create_time() - engine.keeper_began) < 1
        is_running = is_same and process.status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, psutil.NoSuchProcess, msgspec.DecodeError):
        return None
    return engine if is_running else None


def _file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "urteil" / "engine.json"
