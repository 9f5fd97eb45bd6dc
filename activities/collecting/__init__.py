"""Collection: what no live run needs is found, weighed, renamed away and deleted; nothing else is touched."""
