"""Fixtures of the whole session: the stand-ins for NVML and CUDA, compiled once, and boxes served live."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

import judging
import pytest
from checkout import ROOT
from findings_golden import Findings
from hypothesis import HealthCheck, settings
from judged_messages import Reached, collected
from live_box import Box, serve, shipped, with_gpus
from programs import program
from sample import FAULTS
from seam import judge_once
from standin import cuda, nvml
from standin.cuda_binding import Bench
from wording_rules import broken_rules

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

QUICK_LIVE = ("test_live_health", "test_live_watch")
"""Runs of the command with a stand-in for the driver that ``make test`` has, too."""

for profile, examples in (("quick", 15), ("long", 100)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """``make test-all`` runs all tests, whatever their marks.

    A shell ignores SIGINT in what it starts in the background, and children inherit that: tests that interrupt a
    command would wait for ever.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Findings())
    whole = hasattr(config, "workerinput") or config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if whole and not config.option.markexpr:
        config.pluginmanager.register(Reached())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Garbage is looked for among what tests make, not among the half million objects that stay for the whole run."""
    gc.disable()
    found = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First every shipped fault is judged, once for all tests; those of one fault run one after the other, so that its
    document is read once; last come tests that read all of them."""

    def turn(item: pytest.Item) -> tuple[int, str]:
        given = getattr(item, "callspec", None)
        values = given.params.values() if given is not None else ()
        fault = next((value for value in values if isinstance(value, str) and value in FAULTS), "")
        if item.path.stem == "test_every_fault":
            return 0, fault
        return (2 if item.get_closest_marker("of_all_faults") else 1), fault

    mark_what_is_left_to_ci(items)
    items.sort(key=turn)


def mark_what_is_left_to_ci(items: list[pytest.Item]) -> None:
    """Tests that read all shipped faults, those of ``tests/system``, live runs but two modules, and two cases of three
    of a test that has four or more; ``tryfirst``, before ``-m`` deselects.

    The third that stays is a diagonal, which also takes each of two or three forms that all cases are tried in.
    """
    number: Counter[str] = Counter()
    cases = Counter(_test_of(item) for item in items)
    for item in items:
        test = _test_of(item)
        at, number[test] = number[test], number[test] + 1
        other = cases[test] >= 4 and at % 3 != at // 3 % 3
        live = item.path.stem.startswith("test_live_") and item.path.stem not in QUICK_LIVE
        if other or live or item.path.parent.name == "system" or item.get_closest_marker("of_all_faults"):
            item.add_marker("in_ci")


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For ``-n auto``: more than there are cores, for tests of drivers that hang wait most of their time."""
    cores = len(os.sched_getaffinity(0))
    return cores + cores // 2


@pytest.fixture(scope="session")
def of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of a run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def judged_once(of_the_run: Path) -> None:
    """All processes of a run share what they judged of what ships."""
    judging.folder = of_the_run / "judged"
    judging.folder.mkdir(exist_ok=True)


@pytest.fixture(scope="session")
def made_once(of_the_run: Path) -> MadeOnce:
    """``made_once(name, make)``: the folder that the first process of a run fills, and all use."""

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        whole, part = of_the_run / name, of_the_run / f"{name}.part"
        with (of_the_run / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir()
                make(part)
                part.rename(whole)
        return whole

    return folder


@pytest.fixture(scope="session")
def built(made_once: MadeOnce) -> Path:
    """A folder with the sdist, and the wheel that is built from it, outside this checkout and its environment."""
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", ".", str(ROOT)]
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return made_once("dist", lambda folder: subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True))


@pytest.fixture(autouse=True)
def messages_keep_the_rules(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every message that a test of the checks renders keeps the rules, but for what hypothesis makes up."""
    if request.path.parent.name != "checks" or getattr(request.function, "is_hypothesis_test", False):
        yield
        return
    with collected() as messages:
        yield
    rendered = {message for place, each in messages.items() if place is not None for message in each}
    assert {message: broken for message in rendered if (broken := broken_rules(message))} == {}


@pytest.fixture(autouse=True)
def boxes_are_judged_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box that ships is judged once for all tests of what is printed of it."""
    if request.path.parent.name == "output":
        judge_once(monkeypatch)


@pytest.fixture(scope="session")
def standin(made_once: MadeOnce) -> Path:
    """``libnvidia-ml.so.1`` with every symbol of a current driver."""
    program("gcc")
    return made_once("nvml", nvml.build) / nvml.SONAME


@pytest.fixture(scope="session")
def standin_384(made_once: MadeOnce) -> Path:
    """``libnvidia-ml.so.1`` with the symbols of the first drivers of a DGX-1."""
    program("gcc")
    return made_once("nvml-384", lambda folder: nvml.build(folder, without=nvml.newer_than(384))) / nvml.SONAME


@pytest.fixture(scope="session")
def cuda_library(made_once: MadeOnce) -> Path:
    """``libcuda.so.1`` with every symbol that dgxcheck may ask for."""
    program("gcc")
    return made_once("cuda", cuda.build) / cuda.SONAME


@pytest.fixture(scope="session")
def old_cuda_library(made_once: MadeOnce) -> Path:
    """``libcuda.so.1`` of a driver without the symbols that came later."""
    program("gcc")
    return made_once("cuda-old", lambda folder: cuda.build(folder, old_driver=True)) / cuda.SONAME


@pytest.fixture
def opened(cuda_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    """``opened(box, fault, ..)``: this box behind a copy of the library, which is as fresh as in a new process."""

    def bench(box: cuda.Box, *faults: str) -> Bench:
        description, copy = tmp_path / "box", tmp_path / cuda.SONAME
        description.write_text(box.text(*faults))
        shutil.copy(cuda_library, copy)
        monkeypatch.setenv("DGXCHECK_CUDA_BOX", str(description))
        monkeypatch.setenv("DGXCHECK_CUDA_LEDGER", str(tmp_path / "ledger"))
        return Bench(copy)

    return bench


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
