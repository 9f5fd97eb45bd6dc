"""The decisions: pure functions over recorded facts. They import `model` and know nothing of one another."""
