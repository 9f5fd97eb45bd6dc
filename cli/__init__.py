"""The command line and the Python client."""
