"""ACLs, authorization and credentials."""

from __future__ import annotations

import time
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import SECURITY

STARTING_S = 3.0


@mutant(
    about="the authorizer remembers its decisions for ever, although ACLs change",
    models="a decision cache without invalidation",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def acl_cached_forever(mark: Mark) -> None:
    """Answers every authorisation from a cache that is never invalidated."""

    def make(original: Function) -> Function:
        def decide(authorizer: Any, asker: Any, operation: Any, type: Any, name: str) -> Any:
            if authorizer._revision != authorizer.acls.revision:
                mark.hit()
                authorizer._revision = authorizer.acls.revision
            return original(authorizer, asker, operation, type, name)

        return decide

    replace("urteil.broker.security.authorizer:Authorizer._cached_decision", make)


@mutant(
    about="a broker applies added ACLs and ignores removed ones",
    models="an ACL cache that processes additions only",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def acl_removal_ignored(mark: Mark) -> None:
    """Ignores ACL updates of a resource that contain fewer entries than before."""

    def make(original: Function) -> Function:
        def put(table: Any, pattern: Any, acls: Any) -> None:
            known = table.get(pattern)
            if known is not None and len(acls.entries) < len(known.entries):
                mark.hit()
            else:
                original(table, pattern, acls)

        return put

    replace("urteil.broker.security.acls.acl_table:AclTable.put", make)


@mutant(
    about="a PREFIXED ACL matches only a resource of exactly that name",
    models="KIP-290: PREFIXED patterns treated as LITERAL",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def acl_prefix_by_equality(mark: Mark) -> None:
    """Compares a prefixed ACL with the complete resource name only."""

    def make(original: Function) -> Function:
        def about(table: Any, type: Any, name: str) -> Any:
            known = table._prefix_lengths
            lengths = known.get(type, {})
            if any(length < len(name) for length in lengths):
                mark.hit()
            complete = {length: n for length, n in lengths.items() if length == len(name)}
            table._prefix_lengths = {**known, type: complete}
            result = original(table, type, name)
            table._prefix_lengths = known
            return result

        return about

    replace("urteil.broker.security.acls.acl_table:AclTable.matching_entries", make)


@mutant(
    about="a broker accepts a password after it was changed or deleted",
    models="SCRAM credentials cached without regard to notifications",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def old_password_works(mark: Mark) -> None:
    """Ignores changes of credentials that the broker already has."""

    def make(original: Function) -> Function:
        def change_credential(users: Any, entity: str, settings: Any) -> None:
            if users._users.get(entity):
                mark.hit()
            else:
                original(users, entity, settings)

        return change_credential

    replace("urteil.broker.security.sasl.scram_users:ScramUsers._apply_change", make)


@mutant(
    about="a broker that starts does not load the DENY ACLs",
    models="an initial load of ACLs that reads one permission type only",
    scenario="rights-crash",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def deny_acls_not_loaded(mark: Mark) -> None:
    """Removes DENY entries from the ACLs that are loaded in the first seconds."""
    from urteil.broker.security.acls.acl_model import Permission

    began_s = time.monotonic()

    def make(original: Function) -> Function:
        def put(table: Any, pattern: Any, acls: Any) -> None:
            kept = tuple(entry for entry in acls.entries if entry.permission is not Permission.DENY)
            if time.monotonic() - began_s < STARTING_S and len(kept) < len(acls.entries):
                mark.hit()
                acls = changed(acls, entries=kept)
            original(table, pattern, acls)

        return put

    replace("urteil.broker.security.acls.acl_table:AclTable.put", make)


@mutant(
    about="READ or WRITE rights do not imply DESCRIBE",
    models="AclAuthorizer without implied operations",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def implied_describe_denied(mark: Mark) -> None:
    """Removes the operations that imply another one."""

    def make(original: Function) -> Function:
        def says(entries: Any, permission: Any, operations: Any) -> bool:
            if len(operations) < 2 or not original(entries, permission, operations):
                return bool(original(entries, permission, operations))
            mark.hit()
            return bool(original(entries, permission, operations[:1]))

        return says

    replace("urteil.broker.security.authorizer:_has_entry", make)
