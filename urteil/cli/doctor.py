"""`urteil doctor`: the dependencies of the lab, and how to install missing ones."""

from __future__ import annotations

import click

EXIT_MISSING = 255


@click.command(short_help="Show dependencies, and how to install missing ones.")
@click.option("--install", is_flag=True, help="Install missing required parts first.")
@click.option("--compose", is_flag=True, help="With --install, also Docker Compose.")
@click.option("--quiet", is_flag=True, help="Print nothing if every required part is found.")
def doctor(install: bool, compose: bool, quiet: bool) -> int:
    """Print a table of the dependencies: found, version, location or how to install.

    Exit codes: 0 when every part that a run of our own broker requires is found, otherwise 255.
    """
    from rich.console import Console
    from rich.table import Table

    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.dependencies.inventory import install_all, list_dependencies
    from urteil.harness.runtimes.containers.engine import describe_engine

    if install:
        try:
            install_all(compose=compose)
        except MissingDependency as error:
            raise click.ClickException(str(error)) from None
    table = Table("part", "found", "version", "where, or how to get it")
    dependencies = [*list_dependencies(), describe_engine()]
    for part in dependencies:
        state = "yes" if part.found else "missing" if part.required else "no (optional)"
        table.add_row(part.name, state, part.version, part.where if part.found else part.how)
    missing = any(part.required and not part.found for part in dependencies)
    if missing or not quiet:
        Console(soft_wrap=False).print(table)
    return EXIT_MISSING if missing else 0
