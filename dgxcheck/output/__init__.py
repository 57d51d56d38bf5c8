"""Renderers: facts in, text out; none of them asks a machine anything."""
