"""Child processes for everything that runs driver code; a sick driver cannot hang the tool."""
