"""`urteil serve` and `urteil compare`: runs looked at together."""

from __future__ import annotations

import ipaddress
import secrets
from pathlib import Path

import click

from urteil.cli.run import find_run

_out = click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"))


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65_535), default=8017, show_default=True)
@click.option("--token", help="What one must know to look [default: drawn, but for loopback]")
@_out
def serve(host: str, port: int, token: str | None, out: Path) -> None:
    """Show the runs of a folder in a browser: read only, on loopback unless told otherwise."""
    import uvicorn

    from urteil.drawing import caught
    from urteil.reports.web.app import LOOPBACK, make_app

    if not out.is_dir():
        raise click.UsageError(f"{out} is no folder; `--out DIR` names the one that holds the runs")
    local = _is_loopback(host)
    token = token or (None if local else secrets.token_urlsafe(24))
    app = make_app(out, mutants=caught(), token=token, hosts=(*LOOPBACK, host) if local else ())
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", server_header=False)
    try:
        listener = config.bind_socket()
    except SystemExit:
        raise click.ClickException(f"{host}:{port} cannot be listened on; try --port 0") from None
    listener.listen()
    shown = f"[{host}]" if ":" in host else host
    query = f"?token={token}" if token else ""
    click.echo(f"http://{shown}:{listener.getsockname()[1]}/{query}")
    uvicorn.Server(config).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@click.command()
@click.argument("a")
@click.argument("b")
@_out
@click.option("--json", "as_json", is_flag=True, help="The lines as JSON, and nothing else.")
def compare(a: str, b: str, out: Path, as_json: bool) -> None:
    """Put runs A and B (folders, or names below --out) side by side."""
    import msgspec
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from urteil.reports.compare import compare as compared

    folders = [find_run(name, out, needs="result.json", even=True) for name in (a, b)]
    lines = compared(*folders)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(lines), indent=2).decode())
        return
    table = Table("", "", escape(folders[0].name), escape(folders[1].name), "")
    part = ""
    for line in lines:
        shown = "" if line.part == part else line.part
        part = line.part
        cells = (shown, line.what, line.a, line.b, line.change)
        table.add_row(*map(escape, cells), style="bold" if line.differs else "")
    Console(highlight=False).print(table)
