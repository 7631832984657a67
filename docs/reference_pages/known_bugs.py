"""The page of bugs that others published."""

from __future__ import annotations

from docs.reference_pages.markdown import code, codes, page, sentence, table
from urteil.harness.known_bugs import KNOWN_BUGS
from urteil.harness.known_bugs.published_histories import PUBLISHED_HISTORIES

ABOUT = """\
Bugs that others published, and the guarantee that sees each ([guide](../guide/known-bugs.md)). This
page is generated from `harness/known_bugs/` by `make docs`."""

BUGS = """\
## Bugs in releases

`urteil bugs [NAME ...]` plays each bug on the release that has it and on the one that fixed it."""

HISTORIES = """\
## Reports as histories

What clients saw, written by hand as a history of few operations and judged by `urteil import`. The
name is the folder below `harness/known_bugs/histories/broken/`."""


def render() -> dict[str, str]:
    return {"known-bugs.md": page("Published bugs", ABOUT, _bugs(), _histories())}


def _bugs() -> str:
    head = ("bug", "issue", "what goes wrong", "releases", "fixed in", "played on", "scenario",
            "guarantee", "sub-kinds", "shows too")  # fmt: skip
    rows = [
        (code(bug.name), bug.issue, sentence(bug.about), bug.releases, bug.fixed_in,
         f"{bug.broken}, {bug.fixed}", code(bug.scenario), code(bug.guarantee),
         ", ".join(bug.sub_kinds), codes((*bug.or_shown_by, *bug.also)))
        for bug in KNOWN_BUGS.values()
    ]  # fmt: skip
    return f"{BUGS}\n\n{table(head, rows)}"


def _histories() -> str:
    head = ("history", "report", "what happened", "guarantee", "sub-kind", "shows too")
    rows = [
        (code(history.name), f"[{history.report}]({history.link})", history.about,
         code(history.guarantee), history.sub_kind, codes(history.also))
        for history in PUBLISHED_HISTORIES
    ]  # fmt: skip
    return f"{HISTORIES}\n\n{table(head, rows)}"
