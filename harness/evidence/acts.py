"""Names of acts in the table `admin_ops` that the lab's own clients and the verifier use."""

from __future__ import annotations

KILL = "kill client"
INITIALISE = "initialise"
"""InitProducerId with a transactional id."""

GRANT = "grant"
REVOKE = "revoke"
DELETE_POSITION = "delete position"
"""Delete a group's committed position."""
DEFAULT_CLIENT = "<default>"
"""In place of a client id: those that have no quota of their own."""
