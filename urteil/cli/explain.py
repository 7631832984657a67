"""`urteil explain`: the life of one record of a run."""

from __future__ import annotations

from pathlib import Path

import click

from urteil.cli.options import json_option, out_option, run_argument


@click.command(short_help="The life of one record.")
@run_argument("run")
@click.argument("record")
@out_option()
@json_option("The life as JSON, and nothing else; an array of lives for a place.")
def explain(run: str, record: str, out: Path, as_json: bool) -> None:
    """Tell the life of RECORD of RUN (a folder, or `latest`).

    A record is named as findings name it: RUN/CLIENT/SEQUENCE, where CLIENT/SEQUENCE will do, or
    by its place, TOPIC-PARTITION@OFFSET. Told are its send and outcome, who led its partition,
    which faults acted, who read it and when, and what every replica's log holds in the end; of a
    place, every record that anybody says stands there.
    """
    import msgspec
    import pyarrow as pa

    from urteil.cli.runs import whole_run
    from urteil.harness.verify.life import UnknownRecord, life_of, lives_at, told

    folder = whole_run(run, out, "run.json")
    try:
        lives = lives_at(folder, record) if "@" in record else [life_of(folder, record)]
    except UnknownRecord as error:
        raise click.UsageError(str(error)) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise click.ClickException(f"{folder.name} cannot be read: {error}") from None
    if as_json:
        whole = msgspec.json.encode(lives if "@" in record else lives[0])
        click.echo(msgspec.json.format(whole, indent=2).decode())
        return
    for n, life in enumerate(lives):
        for line in ([""] if n else []) + list(told(life)):
            click.echo(line)
