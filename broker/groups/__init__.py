"""Consumer groups: the classic protocol of JoinGroup and SyncGroup, offsets in a replicated log."""
