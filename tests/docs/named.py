"""Commands, files, environments, targets and anchors that the pages name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from urteil.cli.main import urteil
from urteil.cli.tool import tool
from urteil.harness.kafka_tools import TOOLS

ROOT = Path(__file__).parents[2]
SITE = tuple(sorted((ROOT / "docs").rglob("*.md")))
PAGES = (*sorted(ROOT.glob("*.md")), *SITE)
_FENCE = re.compile(r"^ *```")
_INLINE = re.compile(r"`([^`]+)`", re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NOT_ARGUMENTS = re.compile(r"[\[\]|]|\.\.\.")
_PLACEHOLDER = re.compile(r"[A-Z]+(=[A-Z]+)?(:\S*)?|.*\.\.\.")
_COMMENT = re.compile(r" +# |\)\"")
_ENDS = re.compile(r"(?:;|\)\"| && | \| | > | #|  +\w)")


def blocks(page: Path) -> Iterator[str]:
    """The lines of its code blocks, a synopsis over several lines as one."""
    fenced, call = False, ""
    for line in page.read_text().splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            if call and line.strip().startswith(("[", "--")):
                call += f" {line.strip()}"
                continue
            yield call
            call = line.strip()
    yield call


def spans(page: Path) -> Iterator[str]:
    """What stands between backticks in its text."""
    text, fenced = [], False
    for line in page.read_text().splitlines():
        fenced = fenced != bool(_FENCE.match(line))
        if not fenced and not _FENCE.match(line) and not line.startswith("    "):
            text.append(line)
    yield from (" ".join(code.split()) for code in _INLINE.findall("\n".join(text)))


def calls(lines: Iterable[str], program: str) -> Iterator[str]:
    """The calls of a program, each with its words after that."""
    pattern = re.compile(rf"^(?:\S+=\S+ )*(?:eval \"?\$\()?(?:\$ )?(?:\S*/)?{program} (.+)$")
    for line in lines:
        if match := pattern.search(line):
            call = _COMMENT.split(match[1])[0]
            yield call if _NOT_ARGUMENTS.search(call) else _ENDS.split(call)[0]


def complete(call: str) -> bool:
    """Whether it can be typed as it stands: without placeholders (`RUN`, `[--seed N]`)."""
    return not _NOT_ARGUMENTS.search(call) and not any(
        map(_PLACEHOLDER.fullmatch, shlex.split(call))
    )


def wrong_call(call: str, *, is_complete: bool = True) -> str:
    """Why a call of urteil in a page cannot be; empty when it can.

    One that is not complete, or not `whole` (`urteil run`), must name a command and options that
    exist; any other must be what the command line takes.
    """
    if is_complete and complete(call):
        return _unparsed(shlex.split(call))
    return _unknown(re.findall(r"[^\s\[\]]+", call))


def _unparsed(words: list[str]) -> str:
    try:
        command, rest = _command(words)
        command.make_context(words[0], rest)
    except click.exceptions.Exit:
        return ""
    except click.UsageError as error:
        message = error.format_message()
        return "" if "does not exist" in message else message
    return ""


def _unknown(words: list[str]) -> str:
    try:
        command, _ = _command(words)
    except click.UsageError as error:
        return error.format_message()
    if command.context_settings.get("ignore_unknown_options"):  # the options of another program
        return ""
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    named = {option for word in words for option in re.findall(r"(?:^|\|)(--[\w-]+)", word)}
    return ", ".join(f"no option {name}" for name in sorted(named - known - {"--help"}))


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = urteil
    names = iter(words)
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = next(names).split("|")[0]
        if name not in command.commands:
            raise click.UsageError(f"no command {name}")
        command, rest = command.commands[name], rest[1:]
    if command is tool and rest and rest[0].startswith("kafka-") and rest[0] not in TOOLS:
        raise click.UsageError(f"no tool {rest[0]}")
    return command, rest


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The files of the checkout that it links to, each with its anchor or nothing."""
    for target in _LINK.findall(page.read_text()):
        if "://" not in target and not target.startswith("#"):
            path, _, anchor = target.partition("#")
            yield page.parent / path, anchor


def anchors(page: Path) -> set[str]:
    """Those of its headings, as GitHub and MyST make them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
