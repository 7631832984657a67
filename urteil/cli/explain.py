"""`urteil explain`: the life of one record of a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run")
@click.argument("value_id")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="The life as JSON, and nothing else.")
def explain(run: str, value_id: str, out: Path, as_json: bool) -> None:
    """Tell the life of record VALUE_ID of RUN (a folder, or `latest`).

    A record is named as findings name it: RUN/CLIENT/SEQUENCE; CLIENT/SEQUENCE will do. Told are
    its send and outcome, who led its partition, which faults acted, who read it and when, and what
    every replica's log holds in the end.
    """
    import msgspec
    import pyarrow as pa

    from urteil.cli.run import find_run
    from urteil.harness.verify.life import UnknownRecord, life_of, told

    folder = find_run(run, out, needs="run.json")
    try:
        life = life_of(folder, value_id)
    except UnknownRecord as error:
        raise click.UsageError(str(error)) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise click.ClickException(f"{folder.name} cannot be read: {error}") from None
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(life), indent=2).decode())
        return
    for line in told(life):
        click.echo(line)
