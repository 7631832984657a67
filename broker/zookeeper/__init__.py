"""ZooKeeper: the session, the layout of znodes, and the parts that a broker stores there."""
