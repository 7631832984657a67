"""The console script `urteil`: one group, one module for each command, and the exit codes."""

from __future__ import annotations

import os
import sys
import traceback

import click

from urteil.cli.bugs import bugs
from urteil.cli.campaign import mutants
from urteil.cli.cluster import cluster
from urteil.cli.completion import completion
from urteil.cli.coverage import coverage
from urteil.cli.doctor import doctor
from urteil.cli.engine import engine
from urteil.cli.exit_codes import EXIT_LAB_FAILURE, EXIT_WRONG_USAGE
from urteil.cli.explain import explain
from urteil.cli.faults import faults
from urteil.cli.heal import heal
from urteil.cli.hosts import hosts
from urteil.cli.images import images
from urteil.cli.jepsen import export_command, import_command
from urteil.cli.listing import list_command
from urteil.cli.night import night
from urteil.cli.run import report, run, verify
from urteil.cli.schedule import schedule
from urteil.cli.sensitivity import sensitivity
from urteil.cli.serve import compare, serve
from urteil.cli.shrink import shrink
from urteil.cli.simulate import simulate
from urteil.cli.states import states
from urteil.cli.tool import tool
from urteil.cli.wire import wire


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="urteil")
def urteil() -> None:
    """A chaos lab for clusters that speak the Kafka protocol.

    `urteil run demo` plays and judges a first run; its report is runs/latest/report.html.

    Exit codes: 0 PASS, 1 FAIL, 2 UNKNOWN, 254 wrong usage, 255 the lab's own failure.
    """


for command in (
    doctor,
    list_command,
    run,
    schedule,
    verify,
    report,
    explain,
    compare,
    completion,
    export_command,
    import_command,
    serve,
    shrink,
    mutants,
    coverage,
    simulate,
    states,
    sensitivity,
    bugs,
    night,
    cluster,
    tool,
    faults,
    wire,
    heal,
    hosts,
    images,
    engine,
):
    urteil.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with Jepsen's exit codes instead of click's."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        code = urteil.main(args=arguments, prog_name="urteil", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        error.show()
        return EXIT_WRONG_USAGE
    except click.ClickException as error:
        error.show()
        return EXIT_LAB_FAILURE
    except (click.Abort, KeyboardInterrupt):
        click.echo("urteil: interrupted; all parts of the run have ended", err=True)
        return EXIT_LAB_FAILURE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_LAB_FAILURE
    except OSError as error:
        if os.environ.get("URTEIL_DEBUG") or not error.filename:
            return _report_failure(error)
        click.echo(f"urteil: {error.filename}: {error.strerror}", err=True)
        return EXIT_LAB_FAILURE
    except Exception as error:
        return _report_failure(error)


def _report_failure(error: Exception) -> int:
    """Report a failure of the lab: its message, or the type and text of an unexpected error."""
    from urteil.chaos.observations import LabFailure
    from urteil.harness.dependencies.installation import MissingDependency

    if os.environ.get("URTEIL_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, LabFailure | MissingDependency):
        click.echo(f"urteil: {error}", err=True)
        return EXIT_LAB_FAILURE
    click.echo(f"urteil: the lab failed: {type(error).__name__}: {error}", err=True)
    click.echo("urteil: URTEIL_DEBUG=1 shows where", err=True)
    return EXIT_LAB_FAILURE
