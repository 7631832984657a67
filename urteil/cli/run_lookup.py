"""Lookup of a run by name; usage errors name the problem and the remedy."""

from __future__ import annotations

from pathlib import Path

import click

RUN_FILES = ("scenario.json", "run.json", "evidence")


def find_run(
    name: str, out: Path, *, needs: str = "scenario.json", accept_incomplete: bool = False
) -> Path:
    """The folder of a run: a path, a name under `out`, or `latest`.

    With `accept_incomplete`, a folder without the file `needs` is accepted if it has another file
    of a run.
    Raises UsageError (exit 254) that names the missing file, or the runs that exist.
    """
    for folder in (Path(name), out / name):
        if (folder / needs).is_file():
            return folder.resolve()
        if accept_incomplete and any((folder / name).is_file() for name in RUN_FILES[:2]):
            return folder.resolve()
        if any((folder / name).exists() for name in RUN_FILES):
            raise click.UsageError(f"{folder} has no {needs}; {_remedy(name, needs)}")
    runs = sorted(p.name for p in out.glob("*") if (p / "scenario.json").is_file())
    known_runs = f"the newest in {out} are {', '.join(runs[-5:])}" if runs else f"{out} has no run"
    raise click.UsageError(f"no run named {name!r}; {known_runs}")


def readable_run(name: str, out: Path, *files: str) -> Path:
    """As `find_run`, with readable `files` (of scenario.json, run.json, result.json).

    Raises UsageError (exit 254) that names the unreadable file and the remedy.
    """
    import msgspec

    from urteil.harness.scenario import load_facts, load_scenario
    from urteil.harness.verify.result import load_result

    folder = find_run(name, out, needs=files[0])
    loads = {"scenario.json": load_scenario, "run.json": load_facts, "result.json": load_result}
    for file in files:
        try:
            loads[file](folder)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            text = getattr(error, "strerror", None) or str(error)
            raise click.UsageError(
                f"{folder / file} cannot be read ({text}): {_remedy(name, file)}"
            ) from None
    return folder


def _remedy(name: str, file: str) -> str:
    if file == "result.json":
        return f"`urteil verify {name}` makes it"
    return (
        "put back the file that the run wrote, or play the run again (a history that others "
        f"recorded: `urteil import {name}`)"
    )
