"""`urteil completion`: a shell script that completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = click.Choice(["bash", "zsh", "fish"])
VARIABLE = "_URTEIL_COMPLETE"


@click.command(short_help="Print a completion script for a shell.")
@click.argument("shell", type=SHELLS)
def completion(shell: str) -> None:
    """Print the completion script of a SHELL.

    bash: `eval "$(urteil completion bash)"` in ~/.bashrc; zsh likewise in ~/.zshrc; fish:
    `urteil completion fish > ~/.config/fish/completions/urteil.fish`.
    """
    from urteil.cli.main import urteil

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    click.echo(shell_class(urteil, {}, "urteil", VARIABLE).source())


def scenarios(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Scenarios with the typed prefix, each with its description."""
    from urteil.harness.scenarios import SCENARIOS

    return [
        CompletionItem(name, help=scenario.about)
        for name, scenario in SCENARIOS.items()
        if name.startswith(typed)
    ]


def mutants(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Mutants with the typed prefix."""
    from urteil.suites.mutants import MUTANTS

    return [CompletionItem(name) for name in MUTANTS if name.startswith(typed)]


def bugs(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Published bugs with the typed prefix."""
    from urteil.harness.known_bugs import KNOWN_BUGS

    return [
        CompletionItem(name, help=bug.about)
        for name, bug in KNOWN_BUGS.items()
        if name.startswith(typed)
    ]


def runs(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Runs below --out with the typed prefix, and `latest`."""
    from pathlib import Path

    out = Path(ctx.params.get("out") or "runs")
    names = [path.name for path in out.glob("*") if (path / "scenario.json").is_file()]
    return [CompletionItem(name) for name in sorted(names) if name.startswith(typed)]
