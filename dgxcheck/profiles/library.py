"""Shipped profiles and those of a site, and which one a box is compared with."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

from dgxcheck import package_files
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.profiles.model import Board, Profile, SelectedProfile
from dgxcheck.profiles.parse import boards, profile
from dgxcheck.profiles.product import is_product
from dgxcheck.suggestion import did_you_mean
from dgxcheck.survey import Snapshot
from dgxcheck.toml_file import load
from dgxcheck.topology.model import Device, Topology

SHIPPED = os.path.join(package_files.FOLDER, "profiles")
_BOARDS = "boards"


def names() -> tuple[str, ...]:
    """Names of the shipped profiles."""
    files = (name.removesuffix(".toml") for name in package_files.names(SHIPPED) if name.endswith(".toml"))
    return tuple(sorted(name for name in files if name != _BOARDS))


def boards_for(choice: SelectedProfile | None) -> dict[str, Board]:
    """GPU models by id (``10de:1db1``): the shipped ones, overridden by those of the profile."""
    return _shipped_boards() | (dict(choice.profile.own_boards) if choice else {})


def by_name(name: str) -> Profile:
    """A shipped profile, or the one in a TOML file; BadInput where there is none."""
    if name in names():
        return _shipped(name)
    if name.endswith(".toml") or "/" in name:
        return profile(load(name), os.path.basename(name).removesuffix(".toml"), name)
    hint = did_you_mean(name, names(), f"give {', '.join(names())}, auto, none, or a .toml file")
    raise BadInput(f"no profile {name!r}; {hint}")


def select(name: str, box: Snapshot, topology: Topology) -> SelectedProfile | None:
    """The named profile; for ``auto`` that of the DMI product name, else that of the most common GPU model.

    None for ``none`` and where nothing matches. A product name that two profiles share is decided by the GPUs. Counts
    and graphs never exclude a profile: finding differences is up to the checks.
    """
    if name == "none":
        return None
    if name != "auto":
        return SelectedProfile(profile=by_name(name), how="named")
    shipped = [by_name(each) for each in names()]
    models = Counter(id for id in map(board_id, topology.gpus) if id)
    model = models.most_common(1)[0][0] if models else ""
    of_model = [profile for profile in shipped if model in profile.boards]
    of_product = [profile for profile in shipped if _is_named(profile, box)]
    if of_product:
        best = next((profile for profile in of_product if profile in of_model), of_product[0])
        return SelectedProfile(profile=best, how="product")
    return SelectedProfile(profile=of_model[0], how="gpus") if of_model else None


def _is_named(profile: Profile, box: Snapshot) -> bool:
    product = box.host.dmi.product_name if isinstance(box.host, Host) else box.host
    return not isinstance(product, Missing) and any(is_product(product, each) for each in profile.products)


@cache
def _shipped(name: str) -> Profile:
    path = os.path.join(SHIPPED, f"{name}.toml")
    return profile(load(path), name, path)


@cache
def _shipped_boards() -> dict[str, Board]:
    path = os.path.join(SHIPPED, f"{_BOARDS}.toml")
    return boards(load(path), path)


def board_id(gpu: Device) -> str:
    """``vendor:device`` of a GPU on the PCI tree (``10de:1db1``); empty where unknown."""
    function = gpu.function
    if function is None or isinstance(function.vendor, Missing) or isinstance(function.device, Missing):
        return ""
    return f"{function.vendor:04x}:{function.device:04x}"
