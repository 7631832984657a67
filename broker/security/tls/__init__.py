"""TLS: key stores, certificates, contexts and the names of certificates."""
