"""Reports: a run as one HTML file that needs no network and runs no script. Pure."""
