"""How launchers and schedulers want to be told: a file per format."""
