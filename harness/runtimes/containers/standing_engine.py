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


def start(say: Callable[[str], None]) -> StandingEngine:
    """The standing engine, started if there is none. Raises MissingDependency when that fails."""
    if found := find():
        return found
    keeper, started = start_engine_process(say, stays=True)
    engine = StandingEngine(
        url=started.url,
        data=started.data,
        log=started.log,
        keeper=keeper.pid,
        keeper_began=psutil.Process(keeper.pid).create_time(),
    )
    _file().parent.mkdir(parents=True, exist_ok=True)
    save(_file(), engine)
    return engine


def stop() -> bool:
    """End the engine with its containers and networks. False when there was none."""
    found = find()
    if found is None:
        return False
    keeper = psutil.Process(found.keeper)
    keeper.send_signal(signal.SIGTERM)
    try:
        keeper.wait(STOP_S)
    except psutil.TimeoutExpired:
        keeper.kill()
    _file().unlink(missing_ok=True)
    return True


def find() -> StandingEngine | None:
    """The standing engine, if its process lives."""
    try:
        found = msgspec.json.decode(_file().read_bytes(), type=StandingEngine)
        keeper = psutil.Process(found.keeper)
        same = abs(keeper.create_time() - found.keeper_began) < 1
        lives = same and keeper.status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, psutil.NoSuchProcess, msgspec.DecodeError):
        return None
    return found if lives else None


def _file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "urteil" / "engine.json"
