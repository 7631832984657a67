"""`urteil explain`: the history of one record of a run, or the findings of one guarantee."""

from __future__ import annotations

from pathlib import Path

import click

from urteil.cli.options import json_option, out_option, run_argument


@click.command(short_help="Show the history of one record, or findings.")
@run_argument("run")
@click.argument("record")
@out_option()
@json_option("Print only JSON; for an offset, an array.")
def explain(run: str, record: str, out: Path, as_json: bool) -> None:
    """Show what happened to RECORD in RUN (a folder, or `latest`).

    RECORD is RUN/CLIENT/SEQUENCE as in findings, CLIENT/SEQUENCE, or TOPIC-PARTITION@OFFSET. The
    output shows its send and outcome, the leaders of its partition, the active faults, its
    readers, and what each replica's log holds in the end. For an offset it shows every record
    that a client or a replica reported there. RECORD may also be the name of a guarantee: then
    its findings are shown, of a cycle of transactions each edge.
    """
    import msgspec
    import pyarrow as pa

    from urteil.cli.run_lookup import readable_run
    from urteil.harness.verify.guarantees import GUARANTEES
    from urteil.harness.verify.record_timeline import (
        UnknownRecord,
        life_of,
        lives_at,
        timeline_lines,
    )

    if record in GUARANTEES:
        _explain_guarantee(run, record, out, as_json=as_json)
        return
    folder = readable_run(run, out, "run.json")
    try:
        lives = lives_at(folder, record) if "@" in record else [life_of(folder, record)]
    except UnknownRecord as error:
        raise click.UsageError(str(error)) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise click.ClickException(f"{folder.name} cannot be read: {error}") from None
    if as_json:
        encoded = msgspec.json.encode(lives if "@" in record else lives[0])
        click.echo(msgspec.json.format(encoded, indent=2).decode())
        return
    for n, life in enumerate(lives):
        for line in ([""] if n else []) + list(timeline_lines(life)):
            click.echo(line)


def _explain_guarantee(run: str, name: str, out: Path, *, as_json: bool) -> None:
    import msgspec

    from urteil.cli.finding_text import finding_lines
    from urteil.cli.run_lookup import readable_run
    from urteil.harness.verify.result import load_result

    folder = readable_run(run, out, "result.json")
    result = load_result(folder)
    judged = next((one for one in result.guarantees if one.name == name), None)
    if judged is None:
        raise click.UsageError(
            f"{folder.name} was judged before {name} existed: urteil verify {run}"
        )
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(judged), indent=2).decode())
        return
    for line in finding_lines(judged):
        click.echo(line)
