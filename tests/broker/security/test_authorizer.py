"""Decisions by ACLs, against a model that checks every ACL separately."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urteil.broker.security.acls.acl_model import (
    AclFilter,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from urteil.broker.security.acls.acl_table import AclTable, VersionedAcls
from urteil.broker.security.authorizer import Authorizer, Requester, make_authorizer
from urteil.broker.security.principals import parse_principal
from urteil.broker.wire.api_keys import ApiKey

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
Acl = tuple[Pattern, Entry]

NAMES = ("", "a", "ab", "abc", "b", "*")
OPERATIONS = (
    Operation.ALL, Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS, Operation.CREATE,
)  # fmt: skip
IMPLIED = {
    Operation.READ: {Operation.DESCRIBE},
    Operation.WRITE: {Operation.DESCRIBE},
    Operation.ALTER_CONFIGS: {Operation.DESCRIBE_CONFIGS},
}

patterns = st.builds(
    Pattern,
    st.sampled_from((TOPIC, GROUP)),
    st.sampled_from(NAMES[1:]),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
)
entries = st.builds(
    Entry,
    st.sampled_from(("User:ann", "User:bob", "User:*")),
    st.sampled_from(("*", "h1", "h2")),
    st.sampled_from(OPERATIONS),
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
)
acls = st.lists(st.tuples(patterns, entries), max_size=8)
QUICK = settings(max_examples=40, deadline=None, database=None)


def table(acls: Sequence[Acl]) -> AclTable:
    made = AclTable()
    for pattern, entry in acls:
        standing = made.get(pattern) or VersionedAcls()
        made.put(pattern, VersionedAcls(tuple(dict.fromkeys((*standing.entries, entry))), 0))
    return made


def asker(name: str = "User:ann", host: str = "h1") -> Requester:
    return Requester(parse_principal(name), host, ApiKey.FETCH)


def concerns(acl: Acl, who: Requester, type: ResourceType, name: str) -> bool:
    pattern, entry = acl
    if pattern.type is not type:
        return False
    if pattern.kind is PatternType.PREFIXED:
        is_about = name.startswith(pattern.name)
    else:
        is_about = pattern.name in ("*", name)
    by = entry.principal in ("User:*", str(who.principal)) and entry.host in ("*", who.host)
    return is_about and by


def allows(acls: Sequence[Acl], who: Requester, operation: Operation, name: str) -> bool:
    mine = [entry for pattern, entry in acls if concerns((pattern, entry), who, TOPIC, name)]
    denied = any(
        entry.permission is Permission.DENY and entry.operation in (Operation.ALL, operation)
        for entry in mine
    )
    allowed = any(
        entry.permission is Permission.ALLOW
        and (
            entry.operation in (Operation.ALL, operation)
            or operation in IMPLIED.get(entry.operation, ())
        )
        for entry in mine
    )
    return allowed and not denied


@QUICK
@given(acls, st.sampled_from(OPERATIONS[1:]), st.sampled_from(("a", "ab", "abcd", "b", "c")))
def test_deny_wins_over_allow(acls: list[Acl], operation: Operation, name: str) -> None:
    authorizer = Authorizer(table(acls), (), allow_everyone=False)
    for who in (asker(), asker("User:bob"), asker("User:cid", "h2"), asker("Group:ann")):
        expected = allows(acls, who, operation, name)
        assert authorizer.authorize(who, operation, TOPIC, name) is expected
        assert authorizer.authorize(who, operation, TOPIC, name) is expected  # remembered


@QUICK
@given(acls, st.sampled_from(("a", "ab", "abcd", "b", "c")))
def test_allow_everyone_without_acls(acls: list[Acl], name: str) -> None:
    authorizer = Authorizer(table(acls), (), allow_everyone=True)
    spoken = any(
        pattern.type is TOPIC
        and (
            name.startswith(pattern.name)
            if pattern.kind is PatternType.PREFIXED
            else pattern.name in ("*", name)
        )
        for pattern, _ in acls
    )
    expected = allows(acls, asker(), Operation.READ, name) if spoken else True
    assert authorizer.authorize(asker(), Operation.READ, TOPIC, name) is expected


@QUICK
@given(acls)
def test_authorization_on_any_topic(acls: list[Acl]) -> None:
    """Allowed on at least one possible topic name, without implied operations."""
    plain = [
        (pattern, entry)
        for pattern, entry in acls
        if entry.operation in (Operation.ALL, Operation.WRITE)
    ]
    names = {pattern.name for pattern, _ in plain if pattern.name != "*"}
    names |= {f"{name}~" for name in names} | {"~"}
    expected = any(allows(plain, asker(), Operation.WRITE, name) for name in names)
    authorizer = Authorizer(table(acls), (), allow_everyone=False)
    if any(p.kind is PatternType.PREFIXED and p.name == "*" for p, _ in plain):
        return  # a prefix that looks like all names
    assert authorizer.authorize_any(asker(), Operation.WRITE, TOPIC) is expected


def test_super_users_and_acl_changes() -> None:
    acls = table([])
    authorizer = make_authorizer({"super.users": "User:root; User:ann"}, acls)
    assert authorizer.authorize(asker(), Operation.ALTER, TOPIC, "a")
    assert authorizer.authorize_any(asker(), Operation.WRITE, TOPIC)
    bob = asker("User:bob")
    assert not authorizer.authorize(bob, Operation.READ, TOPIC, "a")
    entry = Entry("User:bob", "*", Operation.READ, Permission.ALLOW)
    acls.put(Pattern(TOPIC, "a"), VersionedAcls((entry,), 0))
    assert authorizer.authorize(bob, Operation.READ, TOPIC, "a")
    assert authorizer.operations(bob, TOPIC, "a") == 1 << 3 | 1 << 8
    acls.put(Pattern(TOPIC, "a"), VersionedAcls())
    assert not authorizer.authorize(bob, Operation.READ, TOPIC, "a")
    with pytest.raises(ValueError, match=r"super\.users"):
        make_authorizer({"super.users": "root"}, acls)


@QUICK
@given(acls, st.sampled_from(NAMES), st.sampled_from(tuple(PatternType)[1:]))
def test_filters_match_patterns_and_entries(acls: list[Acl], name: str, kind: PatternType) -> None:
    acl_filter = AclFilter(type=TOPIC, name=name, kind=kind, operation=Operation.READ)
    matches = {
        (pattern, entry)
        for pattern, ones in table(acls).picked_entries(acl_filter)
        for entry in ones
    }
    for pattern, entry in acls:
        fits = pattern.name == name and kind in (PatternType.ANY, pattern.kind)
        if kind is PatternType.MATCH:
            fits = (
                name.startswith(pattern.name)
                if pattern.kind is PatternType.PREFIXED
                else pattern.name in (name, "*")
            )
        fits = fits and pattern.type is TOPIC and entry.operation is Operation.READ
        assert ((pattern, entry) in matches) is fits


def test_audit_log_names_principal_operation_and_resource(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer(AclTable(), (), allow_everyone=False)
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        authorizer.authorize(asker(), Operation.DESCRIBE_CONFIGS, TOPIC, "a", count=2)
        authorizer.authorize(asker(), Operation.READ, TOPIC, "b", log_denied=False)
    assert caplog.messages == [
        "Principal = User:ann is Denied Operation = DescribeConfigs from host = h1 "
        "on resource = Topic:LITERAL:a for request = Fetch with resourceRefCount = 2"
    ]
