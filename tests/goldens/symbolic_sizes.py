"""Integers that remember how they were computed, to read the shape of every parameter of a model as a formula.

A configuration is built with `Symbol`s in place of its whole numbers. The modules of transformers compute with them as
with any number, and every parameter made by torch notes the formula of its number of elements. Nothing is allocated:
the models are made on the meta device.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._device import _device_constructors

Poly = dict[tuple[str, ...], int]
"""A sum of products: {names in order, repeated for powers: coefficient}."""


def poly_of(value: Any) -> Poly:
    """Return the formula of a number; of a plain number, itself."""
    return value.poly if isinstance(value, Symbol) else {(): int(value)} if value else {}


def add(left: Poly, right: Poly, sign: int = 1) -> Poly:
    """Return the sum of two formulas, or their difference."""
    found = Counter(left)
    for names, count in right.items():
        found[names] += sign * count
    return {names: count for names, count in found.items() if count}


def multiply(left: Poly, right: Poly) -> Poly:
    """Return the product of two formulas."""
    found: Counter[tuple[str, ...]] = Counter()
    for names, count in left.items():
        for others, times in right.items():
            found[tuple(sorted((*names, *others)))] += count * times
    return {names: count for names, count in found.items() if count}


def divide(left: Poly, right: Poly) -> Poly:
    """Return the whole quotient of two formulas: cancelled where one product divides all, else as a name of its own."""
    if len(right) == 1:
        ((names, times),) = right.items()
        found: Poly = {}
        for parts, count in left.items():
            rest = list(parts)
            if count % times or any(rest.count(name) < names.count(name) for name in names):
                break
            for name in names:
                rest.remove(name)
            found[tuple(rest)] = count // times
        else:
            return found
    if left.keys() == right.keys() and right:
        ratios = {left[names] / count for names, count in right.items()}
        if len(ratios) == 1 and (ratio := ratios.pop()).is_integer():
            return {(): int(ratio)}
    return {(f"({bracket(left)}//{bracket(right)})",): 1}


def bracket(poly: Poly) -> str:
    """Return a formula as text that can be divided by."""
    text = write(poly)
    return text if text.replace("_", "").replace(".", "").isalnum() else f"({text})"


def write(poly: Poly) -> str:
    """Return a formula as text, as "2*hidden_size+vocab_size"."""
    parts = []
    for names, count in sorted(poly.items()):
        text = "*".join(([str(abs(count))] if abs(count) != 1 or not names else []) + list(names))
        parts.append(("-" if count < 0 else "+") + text)
    return "".join(parts).removeprefix("+") or "0"


class Symbol(int):
    """A whole number with the formula it was computed by."""

    poly: Poly

    def __new__(cls, value: int, poly: Poly | str) -> Symbol:
        found = super().__new__(cls, value)
        found.poly = {(poly,): 1} if isinstance(poly, str) else poly
        return found

    def __deepcopy__(self, memo: Any) -> Symbol:
        return self

    def __copy__(self) -> Symbol:
        return self

    def __reduce__(self) -> Any:
        return (Symbol, (int.__int__(self), self.poly))

    def __add__(self, other: Any) -> Any:
        return combine(self, other, int.__add__, add)

    def __radd__(self, other: Any) -> Any:
        return combine(self, other, int.__add__, add)

    def __sub__(self, other: Any) -> Any:
        return combine(self, other, int.__sub__, lambda left, right: add(left, right, -1))

    def __rsub__(self, other: Any) -> Any:
        return combine(self, other, lambda a, b: b - a, lambda left, right: add(right, left, -1))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Quotient):
            return other * self
        if isinstance(other, float) and not other.is_integer():
            return Quotient(int.__int__(self) * other, f"{bracket(self.poly)}*{other!r}")
        other = builtins.int(other) if isinstance(other, float) else other
        return combine(self, other, int.__mul__, multiply)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return combine(self, other, int.__floordiv__, divide)

    def __rfloordiv__(self, other: Any) -> Any:
        return combine(self, other, lambda a, b: b // a, lambda left, right: divide(right, left))

    def __neg__(self) -> Symbol:
        return Symbol(-int.__int__(self), add({}, self.poly, -1))

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if isinstance(other, int) and 0 < other < 4 and modulus is None:
            found = self
            for _ in range(other - 1):
                found = found * self
            return found
        return int.__int__(self) ** other

    def __truediv__(self, other: Any) -> Any:
        value = int.__int__(self) / other
        if isinstance(other, int) and value.is_integer():
            text = write(divide(self.poly, poly_of(other)))
            # What does not cancel is not whole at other sizes.
            if "//" not in text:
                return Quotient(value, text)
        return Quotient(value, f"{bracket(self.poly)}/{bracket(poly_of(other))}") if isinstance(other, int) else value

    def __int__(self) -> Symbol:
        return self

    __index__ = int.__index__


def combine(left: Symbol, other: Any, compute: Any, join: Any) -> Any:
    """Return the result of an operation on a symbol and a whole number, with its formula."""
    if isinstance(other, bool) or not isinstance(other, int):
        value = int.__int__(left)
        return compute(value, other) if isinstance(other, int) else NotImplemented
    return Symbol(compute(builtins.int.__int__(left), builtins.int.__int__(other)), join(left.poly, poly_of(other)))


class Quotient(float):
    """A fraction with the text of its formula, until it is made whole."""

    text: str

    def __new__(cls, value: float, text: str) -> Quotient:
        found = super().__new__(cls, value)
        found.text = text
        return found

    def __mul__(self, other: Any) -> Any:
        text = write(other.poly) if isinstance(other, Symbol) else repr(other)
        return Quotient(float(self) * float(other), f"({self.text})*({text})")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        text = write(other.poly) if isinstance(other, Symbol) else repr(other)
        return Quotient(float(self) / float(other), f"({self.text})/({text})")

    def __ceil__(self) -> Any:
        return Symbol(float.__ceil__(self), f"(-((-({self.text}))//1))")

    def __deepcopy__(self, memo: Any) -> Quotient:
        return self


class WholeType(type):
    """What stands for `int` in the modules of transformers: it keeps the formulas that `int` would drop."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.int)

    def __call__(cls, value: Any = 0, *rest: Any) -> Any:
        if isinstance(value, Symbol):
            return value
        if isinstance(value, Quotient):
            return Symbol(builtins.int(float(value)), f"int({value.text})")
        return builtins.int(value, *rest)

    def __or__(cls, other: Any) -> Any:
        return builtins.int | other


class Whole(metaclass=WholeType):
    """`int` that keeps formulas."""


def sizes_of(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the sizes that a function of torch was called with, None where it was called otherwise."""
    given = args or ((keywords["size"],) if "size" in keywords else ())
    if given and isinstance(given[0], (tuple, list, torch.Size)):
        given = tuple(given[0])
    return given if all(isinstance(size, int) for size in given) else None


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Note in every new parameter (`formula`) how its number of elements was computed."""
    made = ("empty", "ones", "zeros", "rand", "randn")
    # The list of functions that make tensors on the meta device must hold the functions of torch, not these.
    _device_constructors()
    before = {name: getattr(torch, name) for name in made}
    new = torch.nn.Parameter.__new__

    def wrap(name: str) -> Any:
        def make(*args: Any, **keywords: Any) -> Any:
            found, sizes = before[name](*args, **keywords), sizes_of(args, keywords)
            if sizes is not None:
                found.sizes = sizes
            return found

        return make

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        found = new(cls, data, requires_grad)
        if hasattr(data, "sizes"):
            found.sizes = data.sizes
        return found

    for name in made:
        setattr(torch, name, wrap(name))
    torch.nn.Parameter.__new__ = staticmethod(parameter)
    modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith("transformers.models.") and ("modeling" in name or "configuration" in name)
    ]
    for module in modules:
        module.__dict__["int"] = Whole
    try:
        yield
    finally:
        for module in modules:
            module.__dict__.pop("int", None)
        for name in made:
            setattr(torch, name, before[name])
        torch.nn.Parameter.__new__ = new


def formula(parameter: torch.nn.Parameter) -> Poly:
    """Return the formula of a parameter's number of elements; its plain number where none was noted."""
    sizes = getattr(parameter, "sizes", None)
    if sizes is None or (len(sizes) == 0 and parameter.numel() != 1):
        return {(): parameter.numel()}
    found: Poly = {(): 1}
    for size in sizes:
        found = multiply(found, poly_of(size))
    return found
