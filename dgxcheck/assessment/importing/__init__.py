"""Outputs of other tools as a machine: texts, bundles, and the box onto which they are put."""
