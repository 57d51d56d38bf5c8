"""Fixtures of the whole session: the NVML stand-in, compiled once, and boxes served live."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from live_box import Box, serve, shipped, with_gpus
from programs import program
from standin import nvml

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``libnvidia-ml.so.1`` with every symbol of a current driver."""
    program("gcc")
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def standin_384(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``libnvidia-ml.so.1`` with the symbols of the first drivers of a DGX-1."""
    program("gcc")
    return nvml.build(tmp_path_factory.mktemp("nvml-384"), without=nvml.newer_than(384))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Box]:
    """``served(name, gpus)``: a shipped box as a tree and NVML answers, written once; its ``run`` is shared."""

    @cache
    def box(name: str, gpus: int | None = None) -> Box:
        document = shipped(name)
        folder = tmp_path_factory.mktemp(f"{name}-{gpus or 'all'}")
        return serve(document if gpus is None else with_gpus(document, gpus), folder)

    return box


@pytest.fixture(scope="session")
def slow_open(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For ``LD_PRELOAD``: opening a file whose path holds the text of ``SLOW_OPEN`` hangs."""
    source = Path(__file__).parent / "standin" / "slow_open.c"
    library = tmp_path_factory.mktemp("slow-open") / "slow_open.so"
    subprocess.run((program("gcc"), "-shared", "-fPIC", "-Wall", "-o", str(library), str(source)), check=True)
    return library
