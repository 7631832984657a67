"""The pages of guarantees: an index, and a page for each subject."""

from __future__ import annotations

from pathlib import Path

from docs.reference_pages.markdown import bullets, code, page, sentence, table
from urteil.harness.verify.guarantees import SUBJECTS, Guarantee
from urteil.harness.verify.reference import Reference

PICTURES = Path(__file__).parents[1] / "pictures" / "guarantees"
ABOUT = """\
Every promise of Kafka's protocol that is checked. All are checked in every run; a run is UNKNOWN if
one that its scenario names was not judged. [What a verdict means](../guide/verdicts.md) has the
statuses, the permitted differences and the reasons for UNKNOWN. The pages of the subjects say what
is violated when, what is not counted, and what is permitted. These pages are generated from
`harness/verify/guarantees/` by `make docs`."""
EVIDENCE_ABOUT = """\
The tables of the [evidence](evidence.md) that each guarantee needs, and those in which damage may
cause a violation or hide its excuse. Final logs and final passes are one witness among others: what
a reader received, a broker answered or another replica holds proves a violation also where the
final log has lost it. Where evidence is left that a guarantee does not use, its section says which
and why (*Evidence that is not used*)."""
SUBJECT_ABOUT = """\
In the pictures, time runs from left to right, with a lane for a client or broker; a row of cells is
a log, a cell an offset. Green is as promised, orange a fault, red the violation. *Not counted* is
what a healthy cluster does; *permitted* are differences that settings or faults of the run allow
([verdicts](../../guide/verdicts.md#permitted-differences)). A *reference check* states the meaning
in plain Python for small histories, and tests compare the query with it; what it leaves out, the
query finds alone."""


def render() -> dict[str, str]:
    pages = {
        f"guarantees/{subject}.md": page(
            f"Guarantees: {subject}", SUBJECT_ABOUT, *map(_section, guarantees)
        )
        for subject, guarantees in SUBJECTS.items()
    }
    sections = [_index(subject, guarantees) for subject, guarantees in SUBJECTS.items()]
    sections.append(_evidence())
    names = [f"guarantees/{subject}" for subject in SUBJECTS]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    return pages | {"guarantees.md": page("Guarantees", ABOUT, *sections, toctree)}


def _index(subject: str, guarantees: tuple[Guarantee, ...]) -> str:
    rows = (
        (f"[{guarantee.name}](guarantees/{subject}.md#{guarantee.name})", guarantee.about)
        for guarantee in guarantees
    )
    heading = f"## {subject.capitalize()}"
    return f"{heading}\n\n{table(('guarantee', 'violated when'), rows)}"


def _evidence() -> str:
    """What each guarantee rests on, and whether evidence is left that it does not use."""
    rows = (
        (
            f"[{guarantee.name}](guarantees/{subject}.md#{guarantee.name})",
            ", ".join(map(code, guarantee.needs)),
            ", ".join(map(code, sorted(guarantee.evidence() - {*guarantee.needs}))),
            "yes" if guarantee.unused_evidence else "",
        )
        for subject, guarantees in SUBJECTS.items()
        for guarantee in guarantees
    )
    head = ("guarantee", "not judged without", "also rests on", "more could prove it")
    return f"## Evidence of each\n\n{EVIDENCE_ABOUT}\n\n{table(head, rows)}"


def _reference_check(check: Reference) -> str:
    """What the reference check of a guarantee says, from its docstring."""
    file = f"{check.__module__.removeprefix('urteil.').replace('.', '/')}.py"
    return f"Its [reference check](../../../{file}): {' '.join((check.__doc__ or '').split())}"


def _section(guarantee: Guarantee) -> str:
    kinds = bullets(f"{code(kind)}: {sentence(line)}" for kind, line in guarantee.sub_kinds.items())
    parts = [f"## {guarantee.name}", sentence(guarantee.about)]
    if (PICTURES / f"{guarantee.name}.svg").exists():
        parts.append(f"![{guarantee.about}](../../pictures/guarantees/{guarantee.name}.svg)")
    parts.append(
        f"> {' '.join(guarantee.promise.split())}\n>\n> {' '.join(guarantee.source.split())}"
    )
    parts.append(f"Kinds of violations:\n\n{kinds}")
    if guarantee.reference is not None:
        parts.append(_reference_check(guarantee.reference))
    else:
        parts.append(f"It has no reference check. {sentence(guarantee.no_reference)}")
    if guarantee.details:
        parts.append(f"How it is judged:\n\n{bullets(guarantee.details)}")
    if guarantee.not_counted:
        parts.append(f"Not counted:\n\n{bullets(guarantee.not_counted)}")
    if guarantee.unused_evidence:
        parts.append(f"Evidence that is not used:\n\n{bullets(guarantee.unused_evidence)}")
    if guarantee.excuses:
        reasons = dict.fromkeys(excuse.reason for excuse in guarantee.excuses)
        parts.append(f"Permitted:\n\n{bullets(map(sentence, reasons))}")
    notes = []
    if guarantee.occasion is not None:
        notes.append(f"Judged in runs with {guarantee.occasion.value}.")
    if guarantee.requires:
        names = ", ".join(capability.name for capability in guarantee.requires)
        notes.append(f"Not judged where brokers lack {names} "
                     "([older releases](../../guide/releases.md)).")  # fmt: skip
    if guarantee.compares_times:
        notes.append("Unknown where times of several clients cannot be compared.")
    if guarantee.host_load_excuses:
        notes.append("Unknown where the host was overloaded or a part of the lab failed.")
    if guarantee.needs_complete_passes:
        notes.append("Unknown where a final pass stopped short.")
    return "\n\n".join([*parts, *([" ".join(notes)] if notes else [])])
