"""Acts of administrators, logged as evidence: requests of a real admin client, and changes of
znodes where a release has no request for them."""
