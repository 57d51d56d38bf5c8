"""Pictures of how a machine is wired: what is drawn, where, and how it is written."""
