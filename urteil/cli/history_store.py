"""`urteil import STORE --all`: judge every history below a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.cli.run import EXIT_CODES

if TYPE_CHECKING:
    from urteil.cli.jepsen import ImportRequest
    from urteil.harness.verify.result import Result

ERROR = "ERROR"
BADNESS = (0, 2, 1, 254)
"""Exit codes in order of severity."""
NAMED = 3
"""Maximum number of violated guarantees on a line."""


def judge_store(store: Path, request: ImportRequest, *, as_json: bool) -> int:
    """Judge each history below `store` in turn; return the worst exit code."""
    worst, is_empty = 0, True
    for history in histories(store):
        is_empty = False
        code, line = _judge_history(history, request)
        worst = max(worst, code, key=BADNESS.index)
        click.echo(json.dumps(line) if as_json else _text(line))
    if is_empty:
        raise click.UsageError(
            f"{store} holds no history.edn, history.edn.gz or folder of tables, nor does a folder "
            "below; expected the store of Jepsen's tests"
        )
    return worst


def _judge_history(history: Path, request: ImportRequest) -> tuple[int, dict[str, object]]:
    """The exit code of one history, and the fields of its line."""
    from urteil.cli.jepsen import import_and_judge

    try:
        run_dir, result = import_and_judge(history, request)
    except Exception as error:  # the other histories are still judged
        text = f"{type(error).__name__}: {error}"
        text = error.message if isinstance(error, click.UsageError) else text
        return 254, {"verdict": ERROR, "history": str(history), "error": " ".join(text.split())}
    return EXIT_CODES[result.verdict], {
        "verdict": str(result.verdict),
        "history": str(history),
        "findings": _findings(result),
        "run": str(run_dir),
    }


def histories(store: Path) -> Iterator[Path]:
    """The folders below `store` that hold a history or tables, sorted; links are not followed."""
    from urteil.harness.imports.jepsen.operations import NAMES
    from urteil.harness.imports.tables.importer import tables_in

    if store.is_file():
        yield store
        return
    for place, folders, files in os.walk(store):
        folders.sort()
        if any(name in files for name in NAMES) or tables_in(Path(place)):
            folders.clear()
            yield Path(place)


def _findings(result: Result) -> dict[str, int]:
    """The number of violations by guarantee."""
    return {
        guarantee.name: guarantee.violations
        for guarantee in result.guarantees
        if guarantee.status == "violated"
    }


def _text(line: dict[str, object]) -> str:
    """`FAIL     store/a/b  lost_write 3, duplicate 1  runs/...`"""
    if line["verdict"] == ERROR:
        return f"{ERROR:8} {line['history']}  {line['error']}"
    findings = line["findings"]
    assert isinstance(findings, dict)
    violated = ", ".join(f"{name} {count}" for name, count in list(findings.items())[:NAMED])
    more = f", and {len(findings) - NAMED} more" if len(findings) > NAMED else ""
    return f"{line['verdict']:8} {line['history']}  {violated or '-'}{more}  {line['run']}"
