"""Frozen values, one noun per file: everything that crosses Temporal or is kept on disk."""
