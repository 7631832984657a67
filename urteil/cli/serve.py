"""`urteil serve` and `urteil compare`: views of several runs."""

from __future__ import annotations

import ipaddress
import secrets
from pathlib import Path

import click

from urteil.cli.options import json_option, out_option, run_argument
from urteil.cli.run_lookup import find_run


@click.command(short_help="Show all runs in a browser, read only.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve at.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8017, show_default=True,
              help="Port; 0 is a free one.")  # fmt: skip
@click.option(
    "--token", help="Token that a browser must send.  [default: random; none on loopback]"
)
@out_option()
def serve(host: str, port: int, token: str | None, out: Path) -> None:
    """Show the runs of a folder in a browser, read only; on loopback unless --host is given."""
    import uvicorn

    from urteil.report_drawing import mutants_by_guarantee
    from urteil.reports.web.app import LOOPBACK, make_app

    if not out.is_dir():
        raise click.UsageError(
            f"{out} is not a folder; `--out DIR` names the one that holds the runs"
        )
    local = _is_loopback(host)
    token = token or (None if local else secrets.token_urlsafe(24))
    app = make_app(
        out, mutants=mutants_by_guarantee(), token=token, hosts=(*LOOPBACK, host) if local else ()
    )
    config = uvicorn.Config(app, host=host, port=port, log_level="critical", server_header=False)
    try:
        listener = config.bind_socket()
    except SystemExit:
        raise click.ClickException(
            f"{host}:{port} is not a free address of this machine: name another --host or "
            "--port (0 chooses a free one)"
        ) from None
    listener.listen()
    address = f"[{host}]" if ":" in host else host
    query = f"?token={token}" if token else ""
    click.echo(f"http://{address}:{listener.getsockname()[1]}/{query}")
    uvicorn.Server(config).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@click.command(short_help="Compare two runs.")
@run_argument("a", metavar="A")
@run_argument("b", metavar="B")
@out_option()
@json_option("Print only JSON.")
def compare(a: str, b: str, out: Path, as_json: bool) -> None:
    """Compare runs A and B (folders, or names below --out)."""
    import msgspec
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from urteil.reports.compare import compare as compared
    from urteil.reports.run_loading import NoRun

    folders = [find_run(name, out, needs="result.json", accept_incomplete=True) for name in (a, b)]
    try:
        lines = compared(*folders)
    except NoRun as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(lines), indent=2).decode())
        return
    table = Table("", "", escape(folders[0].name), escape(folders[1].name), "")
    part = ""
    for line in lines:
        heading = "" if line.part == part else line.part
        part = line.part
        cells = (heading, line.what, line.a, line.b, line.change)
        table.add_row(*map(escape, cells), style="bold" if line.differs else "")
    Console(highlight=False).print(table)
