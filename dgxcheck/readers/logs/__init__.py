"""Logs of programs, containers and services around GPUs."""
