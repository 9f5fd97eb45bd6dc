"""What hosts exchange through an artifact store: commits as git bundles, and what agents printed."""
