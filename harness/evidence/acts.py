"""Names of acts and of the objects that they change, in the tables `admin_ops` and `states`, for
the lab's own clients and the verifier."""

from __future__ import annotations

KILL = "kill client"
INITIALISE = "initialise"
"""InitProducerId with a transactional id."""

GRANT = "grant"
REVOKE = "revoke"
DELETE_POSITION = "delete position"
"""Delete a group's committed position."""
ADD_VOTER, REMOVE_VOTER = "add voter", "remove voter"
"""Changes of a dynamic quorum. `after` has the id of the controller's log directory."""
QUORUM_VOTERS = "/quorum/voters"
"""The path of a dynamic quorum's voters: in `settings`, directory ids by node id."""
RAISE_FEATURES = "raise features"
"""UpdateFeatures. `before` and `after` have the finalized levels by the name of the feature."""
FEATURES = "/feature"
"""The path of the finalized features: in `settings`, levels by name."""
DEFAULT_CLIENT = "<default>"
"""In place of a client id: the quota of clients without one of their own."""
