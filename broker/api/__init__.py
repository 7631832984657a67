"""One module an API family; every handler registers itself in `registry`."""
