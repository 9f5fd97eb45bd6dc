"""Effects, one door each."""
