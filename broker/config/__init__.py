"""Settings: the property file, tables of keys, dynamic settings, their checks and views."""
