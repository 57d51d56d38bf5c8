"""Runs the PTX that dgxcheck's kernels are made of, for tests: most machines that run them have no GPU.

Threads of all launches take turns at random, and any of them may stall. A store waits in its thread's buffer and comes
to memory late and in any order, unless ``membar`` empties the buffer, so that a missing one shows. Loads are not
reordered, and there are no warps.
What the instructions do: https://docs.nvidia.com/cuda/parallel-thread-execution/
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ptx_arithmetic import ALU, COMPARE, FLOAT, bits, number
from ptx_text import Instruction, Kernel

BEGUN = 0xFFFF_FF00
"""The SM's clock at the first step."""


class Launch(NamedTuple):
    """``arguments`` in the order of the kernel's parameters; ``only`` names the blocks that are really run."""

    kernel: Kernel
    arguments: Sequence[int]
    blocks: int = 1
    threads: int = 1
    only: Sequence[int] | None = None


class Machine:
    """Memory of 4-byte words, and the threads that run over it; the same seed gives the same order of events."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.memory: dict[int, int] = {}
        self.rooms: list[range] = []
        self.steps = 0
        self.done: Counter[str] = Counter()
        self.arrives: Callable[[int, int], int | None] = lambda address, word: word
        """What becomes of a word that is stored at an address: None where it is lost."""

    def room(self, address: int, words: int, fill: Sequence[int] = ()) -> int:
        """Makes room at an address, of which the first words hold something; the others may not be read."""
        self.rooms.append(range(address, address + 4 * words))
        self.memory.update((address + 4 * i, word) for i, word in enumerate(fill))
        return address

    def words(self, address: int, count: int) -> list[int | None]:
        """What is in memory; None for what was never written."""
        return [self.memory.get(address + 4 * i) for i in range(count)]

    def place(self, address: int, words: int) -> range:
        """The addresses of an access, which must be aligned and inside one room."""
        places = range(address, address + 4 * words, 4)
        if address % (4 * words) or not any(address in room and places[-1] in room for room in self.rooms):
            raise IndexError(f"access of {4 * words} bytes at {address:#x}")
        return places

    def run(self, *launches: Launch, limit: int = 1_000_000) -> None:
        """Runs launches side by side to their end; TimeoutError where they take more steps than the limit."""
        blocks = [
            [Thread(self, launch, block, thread) for thread in range(launch.threads)]
            for launch in launches
            for block in (launch.only if launch.only is not None else range(launch.blocks))
        ]
        while ready := [thread for block in blocks for thread in _ready(block)]:
            awake = self.random.sample(ready, self.random.randint(1, len(ready)))
            for _ in range(32 * len(awake)):
                thread = self.random.choice(awake)
                if not thread.waits and not thread.ended:
                    self.steps += 1
                    thread.step()
                    if self.steps > limit:
                        raise TimeoutError(f"no end after {limit} steps")
        for thread in (thread for block in blocks for thread in block):
            thread.flush()


def _ready(block: list[Thread]) -> list[Thread]:
    """The threads of a block that can go on; opens the barrier where all of them stand at it."""
    waiting = [thread for thread in block if thread.waits]
    if waiting and all(thread.waits or thread.ended for thread in block):
        if len(waiting) < len(block) or len({thread.at for thread in block}) > 1:
            raise RuntimeError("not all threads of a block came to the same barrier")
        verdict = int(any(thread.vote for thread in block))
        for thread in block:
            thread.leave_barrier(verdict)
    return [thread for thread in block if not thread.waits and not thread.ended]


class Thread:
    """One thread: its registers (bit patterns), its place in the kernel and the stores that are on their way."""

    def __init__(self, machine: Machine, launch: Launch, block: int, thread: int) -> None:
        names = [name for _, name in launch.kernel.parameters]
        self.machine, self.kernel = machine, launch.kernel
        self.parameters = dict(zip(names, launch.arguments, strict=True))
        self.registers = {"%tid.x": thread, "%ntid.x": launch.threads, "%ctaid.x": block, "%nctaid.x": launch.blocks}
        self.stores: list[tuple[int, int]] = []
        self.at = self.vote = 0
        self.waits = self.ended = False

    def value(self, operand: str, kind: str = "u64") -> int:
        """A register, the clock, or a literal of a type, as a bit pattern."""
        if operand == "%clock64":
            return BEGUN + self.machine.steps
        if operand.startswith("%"):
            return self.registers[operand]
        return bits(float(operand)) if kind == "f32" else int(operand, 0)

    def step(self) -> None:
        """Does one instruction, and lets one of the stores arrive now and then."""
        if self.stores and self.machine.random.random() < 0.1:
            self.arrive(self.machine.random.randrange(len(self.stores)))
        instruction = self.kernel.instructions[self.at]
        self.at += 1
        if not instruction.guard or bool(self.registers[instruction.guard]) != instruction.negated:
            self.machine.done[instruction.words[0]] += 1
            self.do(instruction)

    def do(self, instruction: Instruction) -> None:
        words, operands = instruction.words, instruction.operands
        name, kind = words[0], words[-1]
        if name == "bra":
            self.at = self.kernel.labels[operands[0]]
        elif name == "ret":
            self.ended = True
        elif name == "bar":
            self.waits, self.vote = True, self.value(operands[2]) if "red" in words else 0
        elif name == "membar":
            self.flush()
        elif name in ("ld", "st", "red"):
            self.access(words, kind, operands)
        elif name == "setp":
            self.registers[operands[0]] = COMPARE[words[1]](*(self.value(operand) for operand in operands[1:]))
        elif kind == "f32" or name == "fma":
            numbers = (number(self.value(operand, "f32")) for operand in operands[1:])
            self.registers[operands[0]] = bits(FLOAT[name](*numbers)) if name != "mov" else bits(next(numbers))
        elif words[-2:] == ("f32", "u32"):
            self.registers[operands[0]] = bits(self.value(operands[1]))
        else:
            result = ALU[name](*(self.value(operand) for operand in operands[1:]))
            wide = "64" in (words[1] if name == "cvt" else kind) or "wide" in words
            self.registers[operands[0]] = result % (1 << (64 if wide else 32))

    def access(self, words: tuple[str, ...], kind: str, operands: tuple[str, ...]) -> None:
        """ld, st and red; a vector is in braces, an address may have an offset."""
        place, others = (operands[1], operands[0]) if words[0] == "ld" else (operands[0], operands[1])
        base, _, offset = place.strip("[]").partition("+")
        if "param" in words:
            self.registers[others] = self.parameters[base] % (1 << int(kind[1:]))
            return
        registers = [register.strip() for register in others.strip("{}").split(",")]
        size = int(kind[1:]) // 32
        places = self.machine.place(self.value(base) + int(offset or 0), size * len(registers))
        parts = list(zip(registers, (places[i : i + size] for i in range(0, len(places), size)), strict=True))
        if words[0] == "red":
            self.flush()
            now = ALU[words[2]](self.machine.memory[places[0]], self.value(registers[0])) % (1 << 32)
            self.machine.memory[places[0]] = now
        for register, addresses in parts if words[0] != "red" else ():
            if words[0] == "ld":
                self.registers[register] = sum(self.load(a) << 32 * i for i, a in enumerate(addresses))
            else:
                self.stores += [(a, self.value(register) >> 32 * i & 0xFFFFFFFF) for i, a in enumerate(addresses)]

    def load(self, address: int) -> int:
        own = [word for where, word in self.stores if where == address]
        return own[-1] if own else self.machine.memory[address]

    def arrive(self, which: int) -> None:
        """Lets a store reach memory; those to the same address keep their order."""
        address = self.stores[which][0]
        _, word = self.stores.pop(next(i for i, (where, _) in enumerate(self.stores) if where == address))
        arrived = self.machine.arrives(address, word)
        if arrived is not None:
            self.machine.memory[address] = arrived

    def flush(self) -> None:
        while self.stores:
            self.arrive(0)

    def leave_barrier(self, verdict: int) -> None:
        instruction = self.kernel.instructions[self.at - 1]
        if "red" in instruction.words:
            self.registers[instruction.operands[0]] = verdict
        self.waits = False
