"""ACLs: their model, the table of a broker, and their nodes in ZooKeeper."""
