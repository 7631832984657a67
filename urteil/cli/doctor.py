"""`urteil doctor`: the parts, found or missing, and how to get them."""

from __future__ import annotations

import click

EXIT_MISSING = 255


@click.command(short_help="The parts: found, version, how to get them.")
@click.option("--install", is_flag=True, help="Get the required parts that are missing first.")
@click.option("--compose", is_flag=True, help="With --install: Docker Compose too.")
@click.option("--quiet", is_flag=True, help="Print nothing when every required part is there.")
def doctor(install: bool, compose: bool, quiet: bool) -> int:
    """Print a table of the parts: found, version, missing and how to get it.

    Exit 0 when every part that a run of our own broker needs is there, otherwise 255.
    """
    from rich.console import Console
    from rich.table import Table

    from urteil.harness.containers.engine import engine_part
    from urteil.harness.parts.inventory import install_all, inventory
    from urteil.harness.parts.part import MissingPart

    if install:
        try:
            install_all(compose=compose)
        except MissingPart as error:
            raise click.ClickException(str(error)) from None
    table = Table("part", "found", "version", "where, or how to get it")
    parts = [*inventory(), engine_part()]
    for part in parts:
        found = "yes" if part.found else "missing" if part.required else "no (optional)"
        table.add_row(part.name, found, part.version, part.where if part.found else part.how)
    missing = any(part.required and not part.found for part in parts)
    if missing or not quiet:
        Console(soft_wrap=False).print(table)
    return EXIT_MISSING if missing else 0
