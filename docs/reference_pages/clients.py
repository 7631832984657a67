"""The page of workload kinds, client kinds and workload options."""

from __future__ import annotations

from docs.reference_pages.markdown import code, codes, page, sentence, table
from urteil.harness.clients.kind import ClientKind, client_kinds, declared_options
from urteil.harness.clients.options import WorkloadOptions, describe
from urteil.harness.clients.workload_kinds import WORKLOAD_KINDS

ABOUT = """\
The kinds of workloads, the kinds of clients that they start, and the options of workloads with
their values and defaults. [Workloads](../guide/workloads.md) says how the clients behave. This page
is generated from `harness/clients/` by `make docs`."""

CLIENTS = """\
`kind` is the column of that name in the table `clients` of the evidence. The
[guarantees](guarantees.md) under *judged by* would have less to judge without the client."""

OPTIONS = """\
A scenario sets options as text in `WorkloadSpec(options={...})`. A name that is not declared and an
impossible value are rejected before the run. An option without a default leaves the choice to the
client library."""


def render() -> dict[str, str]:
    sections = [_workloads(), _kinds(), _options()]
    return {"clients.md": page("Clients and workload options", ABOUT, *sections)}


def _workloads() -> str:
    rows = [(code(kind.name), kind.producers, kind.consumers) for kind in WORKLOAD_KINDS.values()]
    return f"## Workloads\n\n{table(('kind', 'producers', 'consumers'), rows)}"


def _kinds() -> str:
    head = ("kind", "clients", "what it does", "judged by", "libraries", "options")
    rows = [
        (
            code(kind.name),
            _names(kind),
            sentence(kind.about),
            codes(kind.judged_by),
            "" if kind.work is None else ", ".join(kind.libraries),
            codes(row.name for options in kind.options for row in describe(options)),
        )
        for kind in client_kinds().values()
    ]
    return f"## Clients\n\n{CLIENTS}\n\n{table(head, rows)}"


def _names(kind: ClientKind) -> str:
    return code(kind.prefix) if kind.is_single else f"{code(f'{kind.prefix}1')} ..."


def _options() -> str:
    sections = [_struct(options) for options in declared_options()]
    return "\n\n".join([f"## Options\n\n{OPTIONS}", *sections])


def _struct(options: type[WorkloadOptions]) -> str:
    readers = codes(kind.name for kind in client_kinds().values() if options in kind.options)
    rows = [
        (code(row.name), row.about, row.values, code(row.default) if row.default else "")
        for row in describe(options)
    ]
    return f"Read by {readers}:\n\n{table(('option', 'effect', 'values', 'default'), rows)}"
