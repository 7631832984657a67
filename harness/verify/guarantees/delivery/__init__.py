"""Single records: none is lost, changed, repeated or reordered between producer and reader."""
