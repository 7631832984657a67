"""Write the pages of docs/reference that differ from their declarations."""

from docs.reference_pages import write_all

for path in write_all():
    print(path)
