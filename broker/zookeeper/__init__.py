"""ZooKeeper: the session, the layout of its nodes, and what a broker keeps there."""
