"""Shipped profiles and those of a site, and which one a box is compared with.

The build (``hatch_build.py``) compiles the TOML files of this folder into one file of JSON, which is read within a
millisecond; a checkout has none and reads them. Only what a box is compared with is parsed.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from dgxcheck import package_files
from dgxcheck.facts.missing import BadInput, Missing, did_you_mean, rows
from dgxcheck.facts.nvml.gpu import vgpus
from dgxcheck.facts.record import replace
from dgxcheck.input_file import load
from dgxcheck.profiles.document import Boards, profile
from dgxcheck.profiles.model import OF_THE_GPUS, Board, Profile, SelectedProfile
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology

_FILLERS = {"nvidia", "with", "tesla", "system"}
_WORD = re.compile(r"[a-z0-9]+")


def is_product(name: str, product: str) -> bool:
    """``name`` begins with the words of ``product``, and only a part number or a memory size follows.

    A word more makes another machine: ``DGX Station A100`` is no ``DGX Station``.
    """
    given, expected = _words(name), _words(product)
    rest = given[len(expected) :]
    if name.strip() == product.strip():
        return bool(name.strip())
    follows = bool(expected) and given[: len(expected)] == expected
    return follows and all(word.removesuffix("gb").isdecimal() for word in rest)


def _words(name: str) -> list[str]:
    words = [word for word in _WORD.findall(name.lower()) if word not in _FILLERS]
    return [part for word in words for part in (("dgx", word[3:]) if word[:3] == "dgx" and word[3:] else (word,))]


FOLDER = os.path.join(package_files.FOLDER, "profiles")
_BOARDS = "boards"


def names() -> tuple[str, ...]:
    """Names of the shipped profiles."""
    return tuple(sorted(name for name in _documents() if name != _BOARDS))


def boards_for(choice: SelectedProfile | None) -> Mapping[str, Board]:
    """GPU models by id (``10de:1db1``): the shipped ones, overridden by those of the profile."""
    own = choice.profile.own_boards if choice else {}
    return Boards(_documents()[_BOARDS], os.path.join(FOLDER, f"{_BOARDS}.toml"), own)


def by_name(name: str) -> Profile:
    """A shipped profile, or the one in a TOML file; BadInput where there is none."""
    if name in names():
        return _shipped(name)
    if name.endswith(".toml") or "/" in name:
        return profile(load(name), os.path.basename(name).removesuffix(".toml"), name)
    hint = did_you_mean(name, names(), f"give {', '.join(names())}, auto, none, or a .toml file", most=3)
    raise BadInput(f"no profile {name!r}; {hint}")


def select(name: str, box: Snapshot, topology: Topology) -> SelectedProfile | None:
    """The named profile; for ``auto`` that of the DMI product name, else that of the most common GPU model.

    Of a named one only the models count where no GPU is of one of them, on a machine of another product; and the number
    of GPUs, where fewer are found. What the GPUs should be like is then in the profile of that product.

    None for ``none`` and where nothing matches, as for vGPUs, which are shares of a board. A product name that two
    profiles share is decided by the GPUs. Counts and graphs never exclude a profile: finding differences is up to the
    checks.
    """
    if name == "none":
        return None
    shares = vgpus(box.gpu, box.gpu_board)
    models = Counter(id for gpu in topology.gpus if gpu.bdf not in shares and (id := _model(gpu, box)))
    if name != "auto":
        named = by_name(name)
        others = named.boards and models and models.keys().isdisjoint((*named.boards, *named.beside))
        if others and not _is_product(named.products, box):
            named = _of_other_gpus(named, select("auto", box, topology), len(topology.gpus))
        return SelectedProfile(profile=named, how="named")
    model = max(models, key=models.__getitem__, default="")
    of_model = [name for name in names() if model in _documents()[name].get("boards", ())]
    if of_product := [name for name in names() if _is_product(_documents()[name].get("products", ()), box)]:
        best = next((name for name in of_product if name in of_model), of_product[0])
        return SelectedProfile(profile=_shipped(best), how="product")
    return SelectedProfile(profile=_shipped(of_model[0]), how="gpus") if of_model else None


def _of_other_gpus(named: Profile, found: SelectedProfile | None, gpus: int) -> Profile:
    """The models of a profile that the machine is not of, and the figures for GPUs of the machine's own product."""
    own = found.profile if found is not None and found.how == "product" else None
    numbers = {key: number for key, number in named.numbers.items() if key == "gpu.count" and gpus < number.value}
    if own is not None:
        of_gpus = (key for key in own.numbers if key.partition(".")[0] in OF_THE_GPUS and key != "gpu.count")
        numbers |= {key: own.numbers[key] for key in of_gpus}
    return replace(named, numbers=numbers, nvlink_graph="" if own is None else own.nvlink_graph, wiring=())


def _model(gpu: Device, box: Snapshot) -> str:
    """``vendor:device`` of a GPU; in an imported text that of the shipped board with the name that NVML or CUDA has."""
    if id := board_id(gpu) or nvml_board_id(gpu, box):
        return id
    return id_of_name(name_of(gpu, box))


def name_of(gpu: Device, box: Snapshot) -> str:
    """What NVML calls it, else what CUDA does in an imported text; empty where nothing names it."""
    listed = next((row.name for row in box.listed_gpus if row.bdf == gpu.bdf), None)
    if isinstance(listed, str):
        return listed
    printed = (row.more.get("name") for row in rows(box.measurement)
               if row.kind == "device" and row.more.get("bdf") == gpu.bdf)  # fmt: skip
    return next((name for name in printed if isinstance(name, str)), "")


def _is_product(products: Iterable[str], box: Snapshot) -> bool:
    product = box.known_host.dmi.product_name
    return not isinstance(product, Missing) and any(is_product(product, other) for other in products)


@cache
def _documents() -> dict[str, dict[str, Any]]:
    """The documents of all TOML files of this folder, by the file's name."""
    try:
        compiled: dict[str, dict[str, Any]] = json.loads(package_files.read(os.path.join(FOLDER, "shipped.json")))
    except OSError:
        files = (name for name in package_files.names(FOLDER) if name.endswith(".toml"))
        return {name.removesuffix(".toml"): load(os.path.join(FOLDER, name)) for name in files}
    return compiled


@cache
def _shipped(name: str) -> Profile:
    return profile(_documents()[name], name, os.path.join(FOLDER, f"{name}.toml"))


def board_id(gpu: Device) -> str:
    """``vendor:device`` of a GPU on the PCI tree (``10de:1db1``); empty where unknown."""
    return "" if gpu.function is None else gpu.function.ids


def id_of_name(name: object) -> str:
    """``vendor:device`` of the shipped board with NVML's name of a GPU; empty where there is none."""
    model = name.removeprefix("NVIDIA ") if isinstance(name, str) else ""
    return next((id for id, board in _documents()[_BOARDS]["boards"].items() if board["name"] == model), "")


def nvml_board_id(gpu: Device, box: Snapshot) -> str:
    """``vendor:device`` of a GPU as NVML has it; empty where unknown."""
    number = next((row.pci_device_id for row in rows(box.gpu_board) if row.bdf == gpu.bdf), None)
    return f"{number & 0xFFFF:04x}:{number >> 16:04x}" if isinstance(number, int) else ""
