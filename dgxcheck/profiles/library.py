"""Shipped profiles and those of a site, and which one a box is compared with."""

from __future__ import annotations

import os
from collections import Counter

from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.profiles.model import Board, Profile, SelectedProfile
from dgxcheck.profiles.parse import boards, profile
from dgxcheck.suggestion import did_you_mean
from dgxcheck.survey import Snapshot
from dgxcheck.toml_file import load
from dgxcheck.topology.model import Device, Topology

SHIPPED = os.path.dirname(__file__)
_BOARDS = "boards"


def names() -> tuple[str, ...]:
    """Names of the shipped profiles."""
    files = (name.removesuffix(".toml") for name in os.listdir(SHIPPED) if name.endswith(".toml"))
    return tuple(sorted(name for name in files if name != _BOARDS))


def boards_for(choice: SelectedProfile | None) -> dict[str, Board]:
    """GPU models by id (``10de:1db1``): the shipped ones, overridden by those of the profile."""
    path = os.path.join(SHIPPED, f"{_BOARDS}.toml")
    return boards(load(path), path) | (dict(choice.profile.own_boards) if choice else {})


def by_name(name: str) -> Profile:
    """A shipped profile, or the one in a TOML file; BadInput where there is none."""
    if name in names():
        path = os.path.join(SHIPPED, f"{name}.toml")
        return profile(load(path), name, path)
    if name.endswith(".toml") or "/" in name:
        return profile(load(name), os.path.basename(name).removesuffix(".toml"), name)
    hint = did_you_mean(name, names(), f"give {', '.join(names())}, auto, none, or a .toml file")
    raise BadInput(f"no profile {name!r}; {hint}")


def select(name: str, box: Snapshot, topology: Topology) -> SelectedProfile | None:
    """The named profile; for ``auto`` that of the DMI product name, else that of the most common GPU model.

    None for ``none`` and where nothing matches. Counts and graphs never exclude a profile: finding differences is up to
    the checks.
    """
    if name == "none":
        return None
    if name != "auto":
        return SelectedProfile(profile=by_name(name), how="named")
    profiles = [by_name(shipped) for shipped in names()]
    host = box.host
    product = host.dmi.product_name if isinstance(host, Host) else host
    for candidate in profiles:
        if not isinstance(product, Missing) and product.strip() in candidate.products:
            return SelectedProfile(profile=candidate, how="product")
    boards = Counter(id for id in map(board_id, topology.gpus) if id)
    if not boards:
        return None
    commonest = boards.most_common(1)[0][0]
    matching = (candidate for candidate in profiles if commonest in candidate.boards)
    return next((SelectedProfile(profile=candidate, how="gpus") for candidate in matching), None)


def board_id(gpu: Device) -> str:
    """``vendor:device`` of a GPU on the PCI tree (``10de:1db1``); empty where unknown."""
    function = gpu.function
    if function is None or isinstance(function.vendor, Missing) or isinstance(function.device, Missing):
        return ""
    return f"{function.vendor:04x}:{function.device:04x}"
