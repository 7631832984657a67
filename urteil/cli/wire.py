"""`urteil wire`: the requests and answers of a standing cluster, live."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from urteil.cli.options import Number, json_option
from urteil.harness.wakeup_pipe import WakeupPipe

if TYPE_CHECKING:
    from urteil.chaos.link_rules import RuleHit
    from urteil.harness.fault_server import FaultSession, HeldFault

EXIT_NOTHING_PASSED = 1
POLL_S = 0.1
LONGEST_S = 86_400.0
PLAIN_WIDTH = 400
"""Characters of a line without a terminal."""


@click.command(short_help="Print requests and answers of a standing cluster, decoded, live.")
@click.option("--cluster", metavar="NAME", default="default", show_default=True,
              help="The standing cluster.")  # fmt: skip
@click.option("--link", metavar="LEFT->RIGHT", default="client->all", show_default=True,
              help="Links by nodes or roles, such as follower->leader; or all.")  # fmt: skip
@click.option(
    "--api", "apis", metavar="API", multiple=True, help="An API, repeatable.  [default: every one]"
)
@click.option(
    "--client", metavar="ID", default="", help="The client id, with *.  [default: every one]"
)
@click.option("--fields", metavar="PATH=VALUE", default="",
              help="Fields of the request (topics[].name=orders); with one --api.")  # fmt: skip
@click.option(
    "--topic", default="", help="Topic of roles such as leader.  [default: the first by name]"
)
@click.option("--count", type=click.IntRange(1), help="End after so many lines.")
@click.option("--seconds", type=Number(0.1, LONGEST_S), help="End after so many seconds.")
@json_option("Print a JSON object a line, with all fields.")
def wire(
    cluster: str, link: str, apis: tuple[str, ...], client: str, fields: str, topic: str,
    count: int | None, seconds: float | None, as_json: bool,
) -> int:  # fmt: skip
    """Print the requests (>) and answers (<) that pass, until Ctrl-C, --count or --seconds.

    A line has time, link, API and version, correlation id, client id, size, the time of an answer
    since its request, and the main fields. Records are shown by the headers of their batches,
    secrets by their size. Nothing is disturbed. Exit code 1 when nothing passed.
    """
    from urteil.chaos.fault_arguments import FaultArguments
    from urteil.chaos.faults import FAULTS
    from urteil.harness import standing
    from urteil.harness.fault_server import FaultRejected

    interrupt = WakeupPipe()
    interrupt.wake_on(signal.SIGINT)
    options = [{"api": api, "client_id": client, "fields": fields} for api in apis or ("",)]
    try:
        for option in options:
            FAULTS["record"](FaultArguments(target=link, options=option))
        session = standing.faults_on(cluster)
        return _watch(
            session, link, topic, options, count or sys.maxsize, seconds, as_json, interrupt
        )
    except (ValueError, standing.StandingError, FaultRejected) as error:
        raise click.UsageError(str(error)) from None


def _watch(
    session: FaultSession, link: str, topic: str, options: list[dict[str, str]], count: int,
    seconds: float | None, as_json: bool, interrupt: WakeupPipe,
) -> int:  # fmt: skip
    printed = 0
    with ExitStack() as stack:
        recorders = [
            stack.enter_context(
                session.fault("record", link, expiry_s=(seconds or LONGEST_S) + 1, topic=topic,
                              options=dict(option))
            )
            for option in options
        ]  # fmt: skip
        for hit in _hits(recorders, time.monotonic() + (seconds or LONGEST_S), interrupt):
            click.echo(_format_hit(hit, as_json))
            printed += 1
            if printed == count:
                break
    if not printed:
        click.echo(f"{link}: {recorders[0].final.text}", err=True)
    return 0 if printed else EXIT_NOTHING_PASSED


def _hits(recorders: list[HeldFault], end: float, interrupt: WakeupPipe) -> Iterator[RuleHit]:
    """The frames of all recorders, in order, until the moment `end` or Ctrl-C."""
    while True:
        is_last = interrupt.is_woken or time.monotonic() >= end
        observed = [recorder.new_hits() for recorder in recorders]
        if forgotten := sum(count for _, count in observed):
            click.echo(f"{forgotten} frames passed too fast to be shown", err=True)
        yield from sorted((hit for hits, _ in observed for hit in hits), key=lambda hit: hit.at_ns)
        if is_last:
            return
        interrupt.wait(POLL_S)


def _format_hit(hit: RuleHit, as_json: bool) -> str:
    from urteil.harness.wire_lines import wire_line, wire_row

    wall_clock_ns = time.time_ns() - time.monotonic_ns()
    if as_json:
        return json.dumps(wire_row(hit, wall_clock_ns))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH
    return wire_line(hit, wall_clock_ns, max(80, width))
