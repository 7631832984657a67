"""Security: authentication, authorization, TLS, and the storage of credentials."""
