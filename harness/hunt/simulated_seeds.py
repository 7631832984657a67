"""Many seeds of the simulation, spread over processes of this machine or over workers of Spark.

A process plays some seeds. One that dies costs no more than the seeds that it had not finished:
these are played again by another one. A seed under which the process dies again is reported.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import urteil
from urteil.harness.hunt.simulation import SimulatedRun, Simulation, simulate, simulation_of
from urteil.harness.simulation_process import play_task, seed_arguments

AT_ONCE = 4
"""The number of seeds of one process."""
LIMIT_S = 900.0
"""The deadline of one seed."""
MOST_DEATHS = 2
CRASH = "crash"

Batch = Sequence[int]
Player = Callable[[Sequence[Batch]], Iterable[tuple[Batch, Simulation]]]


def play_seeds(seeds: Batch, play: Player) -> Iterator[SimulatedRun]:
    """The runs in the order in which they end. Raises NoSimulation."""
    deaths: Counter[int] = Counter()
    batches: list[Batch] = [seeds[at : at + AT_ONCE] for at in range(0, len(seeds), AT_ONCE)]
    while batches:
        again: list[Batch] = []
        for batch, played in play(batches):
            yield from played.runs
            missing = batch[len(played.runs) :]
            if missing:
                deaths[missing[0]] += 1
                if deaths[missing[0]] == MOST_DEATHS:
                    yield _crashed_run(missing[0], played)
                    missing = missing[1:]
            if missing:
                again.append(missing)
        batches = again


def _crashed_run(seed: int, played: Simulation) -> SimulatedRun:
    how = "does not end" if played.is_late else f"exit code {played.exit_code}"
    last = played.output.strip().splitlines()[-1:] or [""]
    return SimulatedRun(seed=seed, findings={CRASH: f"{how}: {last[0]}"}, seconds=played.seconds)


def local_player(workers: int, mixes: Sequence[str] = (), mutant: str | None = None) -> Player:
    """Plays on this machine, in a number of processes at a time."""

    def play(batches: Sequence[Batch]) -> Iterator[tuple[Batch, Simulation]]:
        with ThreadPoolExecutor(workers) as pool:
            playing = {
                pool.submit(
                    simulate, batch, limit_s=LIMIT_S * len(batch), mixes=mixes, mutant=mutant
                ): batch
                for batch in batches
            }
            try:
                for done in as_completed(playing):
                    yield playing[done], done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    return play


def spark_player(master: str, mixes: Sequence[str] = (), mutant: str | None = None) -> Player:
    """Plays as tasks of Spark. Its workers need PySpark, and a Python for the simulation."""
    from urteil.harness.verify.engines import spark

    def play(batches: Sequence[Batch]) -> Iterator[tuple[Batch, Simulation]]:
        context = spark.start(master).sparkContext
        with tempfile.TemporaryDirectory(prefix="urteil-archive-") as folder:
            archive = _archive(Path(folder))
            context.addPyFile(str(archive))
            tasks = [
                (seed_arguments(batch, mixes, mutant), LIMIT_S * len(batch)) for batch in batches
            ]
            play_one = partial(play_task, archive.name)
            children = context.parallelize(tasks, len(tasks)).map(play_one).collect()
        for batch, child in zip(batches, children, strict=True):
            yield batch, simulation_of(child)

    return play


def _archive(folder: Path) -> Path:
    """The package as a file from which Python can import: the content of its wheel."""
    package = Path(urteil.__path__[0])
    archive = folder / "urteil-package.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as contents:
        for path in _files(package):
            contents.write(path, Path("urteil") / path.relative_to(package))
    return archive


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder, behind links, too: in a checkout the package's folders are links."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            yield from _files(path)
        elif path.suffix in (".py", ".toml", ".lock", ".json"):
            yield path
