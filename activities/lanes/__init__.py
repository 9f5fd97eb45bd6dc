"""How a lane hands over files: its wrapper, its desk, and the intake that trusts neither."""
