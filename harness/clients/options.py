"""Options of a workload: typed structs that the client kinds declare.

An option is a field with a default, bounds and a sentence. `WorkloadSpec.options` and scenario.json
hold options as text, as earlier runs wrote it; `WorkloadOptions.of` is the one place that converts
it. This module has the options that several kinds or the verifier read. An option of one kind
stands in the module of that kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta, inspect

from urteil.chaos.similar_names import suggest
from urteil.harness.clients.promises import AT_LEAST_ONCE, Promise
from urteil.harness.scenario import WorkloadSpec

HOUR_MS = 3_600_000


class OptionError(ValueError):
    """A workload option that does not exist, or that has an impossible value."""


class WorkloadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all structs of options."""

    @classmethod
    def of(cls, load: WorkloadSpec) -> Self:
        """The options of a workload, with defaults for the absent ones. OptionError for an
        impossible value; options of other structs are ignored."""
        kinds = _types(cls)
        return cls(
            **{
                name: _convert(name, text, kinds[name])
                for name, text in load.options.items()
                if name in kinds
            }
        )


class OptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """An option as documents and lists show it."""

    name: str
    about: str
    values: str
    default: str


def describe(options: type[WorkloadOptions]) -> list[OptionRow]:
    """The declared options of a struct."""
    rows = []
    for field in msgspec.structs.fields(options):
        form = inspect.type_info(field.type)
        rows.append(
            OptionRow(
                name=field.name,
                about=_description(form),
                values=_values(form),
                default="" if field.default is None else _text(field.default),
            )
        )
    return rows


def check_options(load: WorkloadSpec, declared: Iterable[type[WorkloadOptions]]) -> None:
    """OptionError for the first option of the workload that none of the structs declares, or whose
    value is impossible."""
    types = {name: kind for options in declared for name, kind in _types(options).items()}
    for name, text in load.options.items():
        if name not in types:
            hint = suggest(name, types)
            raise OptionError(f"workload option {name!r} does not exist; {hint}")
        _convert(name, text, types[name])


def impossible_options(
    options: Mapping[str, str], declared: Iterable[type[WorkloadOptions]]
) -> dict[str, str]:
    """The values that are possible for an option, by each option that has an impossible one."""
    types = {name: kind for struct in declared for name, kind in _types(struct).items()}
    impossible = {}
    for name, text in options.items():
        if name in types:
            try:
                _convert(name, text, types[name])
            except OptionError:
                impossible[name] = _values(inspect.type_info(types[name]))
    return impossible


@cache
def _types(options: type[WorkloadOptions]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(options)}


def _convert(name: str, text: str, kind: Any) -> Any:
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        values = _values(inspect.type_info(kind))
        raise OptionError(f"workload option {name} is {text!r}: give {values}") from None


def _description(form: inspect.Type) -> str:
    match form:
        case inspect.Metadata(extra_json_schema=schema):
            return str((schema or {}).get("description", ""))
        case inspect.UnionType(types=types):
            return next(filter(None, map(_description, types)), "")
    return ""


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _values(form: inspect.Type) -> str:
    """The possible values of an option, as a phrase."""
    match form:
        case inspect.Metadata(type=inner):
            return _values(inner)
        case inspect.UnionType(types=types):
            return " or ".join(_values(t) for t in types if not isinstance(t, inspect.NoneType))
        case inspect.LiteralType(values=values):
            return " or ".join(str(value) for value in sorted(values, key=str))
        case inspect.BoolType():
            return "0 or 1"
        case inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case inspect.FloatType(ge=least, le=most):
            return f"a number from {least:g} to {most:g}"
    return "text"


class LibraryOptions(WorkloadOptions, frozen=True):
    """Options of all readers and producers."""

    old_clients: Annotated[
        bool,
        Meta(
            description="Every second reader and producer uses the protocol of 0.10.1, which has "
            "no record batches; no record has headers then."
        ),
    ] = False
    headers: Annotated[
        bool,
        Meta(description="Whether records have headers, which brokers before 0.11 do not store."),
    ] = True


class SendOptions(WorkloadOptions, frozen=True):
    """Options of producers. Without a value the library's default holds."""

    retries: (
        Annotated[int, Meta(ge=0, le=2**31 - 1, description="`retries` of producers.")] | None
    ) = None
    linger_ms: (
        Annotated[int, Meta(ge=0, le=HOUR_MS, description="`linger.ms` of producers.")] | None
    ) = None
    batch_size: (
        Annotated[int, Meta(ge=0, le=2**31 - 1, description="`batch.size` of producers, in bytes.")]
        | None
    ) = None
    compression_type: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
        Meta(description="`compression.type` of producers."),
    ] = None


class LoadOptions(WorkloadOptions, frozen=True):
    """Options of the load that producers send."""

    deletes: Annotated[
        float, Meta(ge=0, le=1, description="The share of tombstones in compacted topics.")
    ] = 0.2
    records: Annotated[
        int,
        Meta(ge=0, le=10**10, description="The number of records of a bulk load, in all."),
    ] = 100_000
    timestamp_jitter_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=HOUR_MS,
            description="How far the timestamps of records lie in the past at most, out of order.",
        ),
    ] = 0


FETCH_MAX_WAIT_MS = 200
"""How long a broker may hold back a fetch of any reader or member while it has no record."""


class FetchOptions(WorkloadOptions, frozen=True):
    """Options of live readers and group members."""

    fetch_bytes: (
        Annotated[
            int,
            Meta(ge=0, le=2**31 - 1, description="The size of a fetch of readers and members."),
        ]
        | None
    ) = None


GroupProtocol = Literal["classic", "consumer"]
CLASSIC: GroupProtocol = "classic"
CONSUMER: GroupProtocol = "consumer"
"""The protocols of groups. Members of a `classic` group elect a leader, which assigns; the
coordinator of a `consumer` group assigns (KIP-848)."""


class MembershipOptions(WorkloadOptions, frozen=True):
    """Options of all members of the group."""

    group_protocol: Annotated[
        GroupProtocol,
        Meta(
            description="`group.protocol` of members: with `consumer` (KIP-848) the coordinator "
            "assigns partitions. Members then use confluent-kafka."
        ),
    ] = CLASSIC
    migrates: Annotated[
        bool,
        Meta(
            description="In a `consumer` group the first session of each member has the protocol "
            "`classic`: the group migrates while it works."
        ),
    ] = False
    assignor: Annotated[
        Literal["range", "cooperative"],
        Meta(
            description="The assignor of a `classic` group: `range` is eager, `cooperative` is "
            "sticky."
        ),
    ] = "range"
    remote_assignor: Annotated[
        Literal["uniform", "range"] | None,
        Meta(
            description="`group.remote.assignor` of a `consumer` group; by default the "
            "coordinator chooses."
        ),
    ] = None
    session_timeout_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=HOUR_MS,
            description="`session.timeout.ms` of members; of a `consumer` group, the brokers' "
            "`group.consumer.session.timeout.ms`.",
        ),
    ] = 6_000
    heartbeat_interval_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=HOUR_MS,
            description="`heartbeat.interval.ms` of members; of a `consumer` group, the brokers' "
            "`group.consumer.heartbeat.interval.ms`.",
        ),
    ] = 1_000
    max_poll_interval_ms: Annotated[
        int, Meta(ge=1, le=24 * HOUR_MS, description="`max.poll.interval.ms` of members.")
    ] = 300_000


def has_consumer_protocol(load: WorkloadSpec) -> bool:
    """Whether the workload's group has the protocol `consumer` (KIP-848), or migrates to it."""
    return MembershipOptions.of(load).group_protocol == CONSUMER


def member_protocol(load: WorkloadSpec, session: int) -> GroupProtocol:
    """The protocol of a member in its first session (1) or a later one."""
    options = MembershipOptions.of(load)
    is_former = options.migrates and session == 1
    return CLASSIC if is_former else options.group_protocol


PROTOCOL_OF = {"assignor": CLASSIC, "remote_assignor": CONSUMER, "migrates": CONSUMER}
"""Options of one protocol alone."""


def check_protocol(load: WorkloadSpec) -> None:
    """OptionError for an option that the protocol of the group does not have, and for static
    members of a group that migrates."""
    options = MembershipOptions.of(load)
    own = options.group_protocol
    if options.migrates and GroupOptions.of(load).static:
        raise OptionError("workload option static is for groups that do not migrate; leave one out")
    for name, protocol in PROTOCOL_OF.items():
        if name in load.options and protocol != own:
            raise OptionError(
                f"workload option {name} is for group_protocol={protocol}; the group has the "
                f"protocol {own}"
            )


class GroupOptions(WorkloadOptions, frozen=True):
    """Options of group members that process records."""

    members: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000,
            description="The number of members in `mixed`, and in `application` if it is set.",
        ),
    ] = 2
    commit: Annotated[
        Literal["before", "after"],
        Meta(description="Whether members commit before or after they process records."),
    ] = "after"
    max_poll_records: (
        Annotated[int, Meta(ge=1, le=10**6, description="`max.poll.records` of members.")] | None
    ) = None
    static: Annotated[
        bool,
        Meta(
            description="Each member has a `group.instance.id` that its sessions share (KIP-345). "
            "In a `consumer` group the next session of a killed member waits until the coordinator "
            "has released it."
        ),
    ] = False
    zombie_commits: Annotated[
        bool,
        Meta(
            description="Members commit again in each generation that has ended; the coordinator "
            "must reject it."
        ),
    ] = False


class ShareOptions(WorkloadOptions, frozen=True):
    """Options of members of a share group (KIP-932)."""

    releases: Annotated[
        float, Meta(ge=0, le=1, description="The share of deliveries that members release.")
    ] = 0.1
    rejects: Annotated[
        float, Meta(ge=0, le=1, description="The share of deliveries that members reject.")
    ] = 0.05
    late_acknowledgements: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The share of polls whose records members of a share group acknowledge "
            "after their locks have run out.",
        ),
    ] = 0.0
    acquire_mode: Annotated[
        Literal["batch_optimized", "record_limit"],
        Meta(description="`share.acquire.mode` of members (KIP-1206; the Java client only)."),
    ] = "batch_optimized"
    lock_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=HOUR_MS,
            description="`share.record.lock.duration.ms` of the share group: how long a member "
            "has a record to itself.",
        ),
    ] = 5_000


class TransactionOptions(WorkloadOptions, frozen=True):
    """Options of all transactional clients."""

    transaction_timeout_ms: Annotated[
        int, Meta(ge=1, le=24 * HOUR_MS, description="`transaction.timeout.ms` of the clients.")
    ] = 8_000


class OutcomeOptions(WorkloadOptions, frozen=True):
    """Options of clients that run one transaction after another."""

    aborts: Annotated[
        float, Meta(ge=0, le=1, description="The share of transactions that end with an abort.")
    ] = 0.25


class CopierOptions(WorkloadOptions, frozen=True):
    """Options of copiers."""

    copiers: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000,
            description="The number of members that copy the first topic to the second in "
            "transactions; none without a second topic.",
        ),
    ] = 1


class ApplicationOptions(WorkloadOptions, frozen=True):
    """Options of the application of a workload `pipeline` or `application`."""

    application: Annotated[
        str,
        Meta(
            description="The application of the workload `application` "
            "(`urteil list applications`)."
        ),
    ] = ""
    variant: Annotated[
        str, Meta(description="A seeded bug of the application; empty for none.")
    ] = ""
    app: Annotated[
        str,
        Meta(description="The command of a pipeline's application; empty for the lab's example."),
    ] = ""
    apps: Annotated[
        int, Meta(ge=0, le=1_000, description="The number of instances of the application.")
    ] = 2
    promise: Annotated[
        Promise,
        Meta(
            description="The promise by which the application's outputs are judged; by default "
            "what the application declares."
        ),
    ] = AT_LEAST_ONCE


JUDGED = (
    *(SendOptions, MembershipOptions, GroupOptions, ShareOptions, TransactionOptions),
    ApplicationOptions,
)
"""The structs that the verifier reads."""
