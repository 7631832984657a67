"""SASL: the exchange that all mechanisms share, PLAIN and SCRAM, and the JAAS configuration."""
