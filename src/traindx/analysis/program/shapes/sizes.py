"""Sizes of dimensions: whole numbers, and polynomials over sizes that are not known.

Every symbol stands for a whole number of at least one, so some comparisons are certain although
the numbers are not known: `T` and `T - 1` differ whatever `T` is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

Monomial = tuple[str, ...]
FLOOR = "⌊"


@dataclass(frozen=True, slots=True)
class Size:
    """A polynomial with whole coefficients that is not a constant."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        return _made(_merged(_terms(self), _terms(other)))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: int) -> Dim:
        return self * -1 + other

    def __mul__(self, other: Dim) -> Dim:
        product: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                key = tuple(sorted(left + right))
                product[key] = product.get(key, 0) + a * b
        return _made(product)

    __rmul__ = __mul__

    def __rfloordiv__(self, other: int) -> Dim:
        return floor(other, self)

    def __floordiv__(self, other: Dim) -> Dim:
        exact = divided(self, other)
        return floor(self, other) if exact is None else exact

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms, key=lambda t: (-len(t[0]), t[0])):
            sign = " - " if coefficient < 0 else " + "
            number = str(abs(coefficient)) if abs(coefficient) != 1 or not monomial else ""
            text += sign + "·".join([*([number] if number else []), *monomial])
        return text.removeprefix(" + ").replace(" - ", "-", 1 if text.startswith(" - ") else 0)


Dim = int | Size


def symbol(name: str) -> Size:
    """Return the unknown size of that name."""
    return Size((((name,), 1),))


def is_dim(value: object) -> TypeGuard[Dim]:
    """Tell whether a value is a size; True and False are none."""
    return isinstance(value, Size) or (isinstance(value, int) and not isinstance(value, bool))


def floor(dividend: Dim, divisor: Dim) -> Dim:
    """Return the quotient rounded down, as a symbol of its own where it is not known."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    whole, rest = _split(dividend, divisor)
    if isinstance(rest, int) and isinstance(divisor, int) and 0 <= rest < divisor:
        return whole
    return symbol(f"{FLOOR}({rest})/{divisor}⌋") + whole


def _split(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """Take the part that a number divides out of a dividend: (whole quotient, rest)."""
    if not isinstance(divisor, int) or isinstance(dividend, int) or divisor <= 0:
        return 0, dividend
    whole = {m: c // divisor for m, c in dividend.terms}
    rest = {m: c % divisor for m, c in dividend.terms}
    return _made(whole), _made(rest)


def divided(dividend: Dim, divisor: Dim) -> Dim | None:
    """Return the quotient where it is whole whatever the symbols stand for, else None."""
    if divisor == 0:
        return None
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor if dividend % divisor == 0 else None
    terms = _terms(divisor)
    if len(terms) != 1:
        return 1 if dividend == divisor else _factored(dividend, divisor)
    ((monomial, coefficient),) = terms
    quotient: dict[Monomial, int] = {}
    for own, number in _terms(dividend):
        left = list(own)
        for name in monomial:
            if name not in left:
                return None
            left.remove(name)
        if number % coefficient:
            return None
        quotient[tuple(left)] = number // coefficient
    return _made(quotient)


def _factored(dividend: Dim, divisor: Dim) -> Dim | None:
    """Divide by a sum, where the quotient is one term: (B·H - 2·B) / (H - 2) is B."""
    if isinstance(dividend, int) or isinstance(divisor, int):
        return None
    lead, top = _terms(divisor)[-1], _terms(dividend)[-1]
    guess = divided(_made(dict([top])), _made(dict([lead])))
    return guess if guess is not None and guess * divisor == dividend else None


def is_surely_different(left: Dim, right: Dim) -> bool:
    """Tell whether two sizes differ whatever the symbols stand for."""
    difference = left - right
    if isinstance(difference, int):
        return difference != 0
    signs = {c > 0 for _, c in difference.terms}
    is_firm = any(not any(n.startswith(FLOOR) for n in m) for m, _ in difference.terms)
    return len(signs) == 1 and is_firm


def product(sizes: tuple[Dim, ...]) -> Dim:
    """Return the number of elements."""
    result: Dim = 1
    for size in sizes:
        result = result * size
    return result


def _terms(size: Dim) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, int):
        return (((), size),) if size else ()
    return size.terms


def _merged(
    left: tuple[tuple[Monomial, int], ...], right: tuple[tuple[Monomial, int], ...]
) -> dict[Monomial, int]:
    merged = dict(left)
    for monomial, coefficient in right:
        merged[monomial] = merged.get(monomial, 0) + coefficient
    return merged


def _made(terms: dict[Monomial, int]) -> Dim:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Size(tuple(sorted(kept.items())))
