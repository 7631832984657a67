"""Kerberos: SASL GSSAPI and the names of principals."""
