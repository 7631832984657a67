"""The page of faults, by family."""

from __future__ import annotations

from collections.abc import Mapping

from docs.reference_pages.markdown import bullets, code, codes, page, sentence, table
from urteil.chaos.fault_options import COORDINATOR_OPTIONS, FaultOption
from urteil.chaos.faults import FAULTS, Fault
from urteil.chaos.node_selectors import ROLES

ABOUT = """\
Every fault that a schedule may name: what it does, its targets, its options, and the observation
that proves that it acted. A fault without proof did not act, and its run is UNKNOWN.
[How faults act](../guide/faults.md) has what the faults of a family share. `urteil list faults`
prints this list. This page is generated from `chaos/faults/` by `make docs`."""


def render() -> dict[str, str]:
    families: dict[str, list[type[Fault]]] = {}
    for fault in FAULTS.values():
        families.setdefault(fault.family, []).append(fault)
    index = table(
        ("family", "faults"),
        ((f"[{family}](#{family}-faults)", ", ".join(f"[{f.name}](#{f.name})" for f in faults))
         for family, faults in sorted(families.items())),
    )  # fmt: skip
    sections = [
        "\n\n".join([f"## {family.capitalize()} faults", *map(_section, faults)])
        for family, faults in sorted(families.items())
    ]
    return {"faults.md": page("Faults", ABOUT, index, _targets(), *sections)}


def _targets() -> str:
    roles = table(("role", "selects"), ((code(name), about) for name, about in ROLES.items()))
    return (
        "## Targets\n\nA target is a role, which is resolved when the fault begins, or nodes by "
        "name (`b2`, `b1,b3`, `zk1`). Faults of links accept pairs, such as `follower->leader` or "
        f"`left<->right`.\n\n{roles}\n\nOptions of every fault: `topic` and `partition` select "
        "the partition of a role, the first one of the first topic by default. "
        f"{_coordinator_options()}"
    )


def _coordinator_options() -> str:
    return " ".join(
        sentence(f"{code(name)} is {option.about}") for name, option in COORDINATOR_OPTIONS.items()
    )


def _section(fault: type[Fault]) -> str:
    facts = [f"Targets: {fault.selectors}", f"Proof: {fault.proves}"]
    facts.append(f"Effects: {codes(sorted(fault.effects))}")
    if len(fault.on_runtimes) < len(Fault.on_runtimes):
        facts.append(f"Runtime: {codes(fault.on_runtimes)} only")
    if len(fault.on_targets) < len(Fault.on_targets):
        facts.append(f"Clusters: {codes(fault.on_targets)} only")
    if fault.needs:
        facts.append(f"Brokers must have: {', '.join(need.name for need in fault.needs)}")
    if fault.expiry_s != Fault.expiry_s:
        facts.append(f"Expiry: {fault.expiry_s:g} s after its planned end")
    parts = [f"### {fault.name}", sentence(fault.about), bullets(facts)]
    if fault.options:
        parts.append(_options(fault.options))
    return "\n\n".join(parts)


def _options(options: Mapping[str, FaultOption]) -> str:
    rows = [
        (code(name), _kind(option), _default(option), _values(option), option.about)
        for name, option in sorted(options.items())
    ]
    return table(("option", "type", "default", "values", "meaning"), rows)


def _kind(option: FaultOption) -> str:
    kind = {bool: "flag", int: "whole number", float: "number", str: "text"}[option.kind]
    return f"{kind} ({option.unit})" if option.unit else kind


def _default(option: FaultOption) -> str:
    if option.default in (None, ""):
        return "by the fault"
    if option.kind is bool:
        return code(str(option.default).lower())
    return code(f"{option.default:.10g}" if option.kind in (int, float) else option.default)


def _values(option: FaultOption) -> str:
    if option.choices:
        return codes(option.choices)
    has_least, has_most = option.least > float("-inf"), option.most < float("inf")
    if has_least and has_most:
        return f"{option.least:.10g} to {option.most:.10g}"
    return f"at least {option.least:.10g}" if has_least else ""
