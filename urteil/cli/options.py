"""Arguments and options that several commands take, so that they mean the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from urteil.cli import completion
from urteil.harness.verify.engines.choice import AUTO, CHOICES

Decorator = Callable[[Any], Any]


class Number(click.FloatRange):
    """A range of floats that has no place for `nan`, which compares with nothing."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number


def run_argument(
    name: str = "run_dir", *, metavar: str = "RUN", required: bool = True
) -> Decorator:
    """A run: a folder, a name below --out, or `latest`."""
    return click.argument(name, metavar=metavar, required=required, shell_complete=completion.runs)


def out_option(told: str = "The folder of all runs.") -> Decorator:
    return click.option(
        "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
        help=f"{told}  [default: runs]",
    )  # fmt: skip


def into_option(told: str) -> Decorator:
    return click.option("--into", type=click.Path(file_okay=False, path_type=Path), help=told)


def engine_option() -> Decorator:
    return click.option(
        "--engine", type=click.Choice(CHOICES), default=AUTO, show_default=True,
        help="The engine that judges; auto chooses Spark for large runs (docs/guide/spark.md).",
        callback=_to_judge_in_time,
    )  # fmt: skip


def _to_judge_in_time(_context: Any, _param: Any, engine: str) -> str:
    """A missing PySpark or a wrong limit of the environment is an error before anything is played
    or judged anew."""
    from urteil.harness.parts.pyspark import require_pyspark
    from urteil.harness.verify.watch import asked_limit_s

    if engine == "spark":
        require_pyspark()
    try:
        asked_limit_s()
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return engine


def budget_option(told: str) -> Decorator:
    return click.option("--budget", type=Number(0, 100_000), metavar="MINUTES", help=told)


def json_option(told: str) -> Decorator:
    return click.option("--json", "as_json", is_flag=True, help=told)


def summary_option(what: str) -> Decorator:
    return click.option(
        "--summary", type=click.Path(dir_okay=False, path_type=Path),
        help=f"Append {what} to this file in Markdown, as $GITHUB_STEP_SUMMARY takes it.",
    )  # fmt: skip
