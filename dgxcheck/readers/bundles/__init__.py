"""Bug reports, support archives and directories of outputs: many outputs of one machine, as facts of that machine."""
