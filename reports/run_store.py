"""The runs below a folder, with the summary of each; evidence is not read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from urteil.harness.verify.result import FaultResult, Status, Verdict

PATTERNS = ("*", "*/runs/*", "*/tries/*")
"""Places of runs: the folder itself, its campaigns, and the tries of shrinking."""
NO_VERDICT = "none"


class Head(msgspec.Struct, frozen=True):
    """The fields of a guarantee's result that lists show."""

    name: str
    status: Status
    violations: int = 0


class Summary(msgspec.Struct, frozen=True):
    """The fields of `result.json` that lists show."""

    verdict: Verdict
    seed: int
    scenario: str
    target: str
    mutant: str | None = None
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}
    versions: dict[str, str] = {}
    guarantees: list[Head] = []
    faults: list[FaultResult] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One run: `name` is its path below the store, `at_s` its wall clock time.

    `summary` is None when there is no readable verdict.
    """

    name: str
    path: Path
    at_s: float
    scenario: str
    summary: Summary | None

    @property
    def verdict(self) -> str:
        return NO_VERDICT if self.summary is None else str(self.summary.verdict)

    @property
    def date(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at_s))

    @property
    def violations(self) -> dict[str, int]:
        guarantees = self.summary.guarantees if self.summary else []
        return {
            guarantee.name: guarantee.violations
            for guarantee in guarantees
            if guarantee.status is Status.VIOLATED
        }


class NotStored(LookupError):
    """The store has no run of that name."""


class Store:
    """The runs below `root`. No path outside it is named or opened, also through links."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def runs(self) -> list[ListedRun]:
        """All runs, the newest first."""
        folders = {path: None for pattern in PATTERNS for path in self._folders(pattern)}
        return sorted(
            map(self._describe_run, folders), key=lambda run: (run.at_s, run.name), reverse=True
        )

    def run(self, name: str) -> ListedRun:
        """The run of a name; raises NotStored for any other name."""
        if any(part.startswith(".") for part in Path(name).parts):
            raise NotStored(name)
        path = self.resolve_inside(self.root / name)
        if path is None or path == self.root or not _is_run(path):
            raise NotStored(name)
        return self._describe_run(path)

    def resolve_inside(self, path: Path) -> Path | None:
        """The resolved path if it is inside the store, else None."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        return real if real.is_relative_to(self.root) else None

    def _folders(self, pattern: str) -> Iterator[Path]:
        for path in self.root.glob(pattern):
            if not path.is_symlink() and _is_run(path) and self.resolve_inside(path) is not None:
                yield path.resolve()

    def _describe_run(self, path: Path) -> ListedRun:
        result = path / "result.json"
        try:
            summary = _summary(result, result.stat().st_mtime_ns)
        except OSError:
            summary = None
        files = (path / "scenario.json", path / "run.json", result)
        at_s = min(file.stat().st_mtime for file in files if file.exists())
        return ListedRun(
            name=path.relative_to(self.root).as_posix(),
            path=path,
            at_s=at_s,
            scenario=summary.scenario if summary else _scenario(path),
            summary=summary,
        )


def _is_run(path: Path) -> bool:
    names = ("scenario.json", "result.json", "run.json")
    return path.is_dir() and any((path / name).is_file() for name in names)


@lru_cache(maxsize=4096)
def _summary(path: Path, _mtime_ns: int) -> Summary | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


class _Name(msgspec.Struct):
    name: str


def _scenario(path: Path) -> str:
    try:
        return msgspec.json.decode((path / "scenario.json").read_bytes(), type=_Name).name
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return "?"
