"""The mean and deviation of random numbers, and of what is computed from such."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindx.analysis.program.execution.values import Known, Result, Value


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean of some numbers and their standard deviation, roughly."""

    mean: float
    std: float

    @property
    def size(self) -> float:
        """How large a number of these is, whatever its sign."""
        return max(abs(self.mean), self.std)


UNIT = Spread(0.0, 1.0)
TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "invert"})
LARGEST = 300.0  # an exponent beyond which no float is left


def _uniform(low: float, high: float) -> Spread:
    return Spread((low + high) / 2, abs(high - low) / math.sqrt(12))


def _gamma(shape: float, scale: float) -> Spread:
    return Spread(shape * scale, math.sqrt(abs(shape)) * scale)


def _beta(a: float, b: float) -> Spread:
    total = max(a + b, 1e-9)
    return Spread(a / total, math.sqrt(abs(a * b / (total * total * (total + 1)))))


def _lognormal(mean: float, sigma: float) -> Spread:
    if mean + sigma**2 > LARGEST:
        return Spread(math.inf, math.inf)
    middle = math.exp(mean + sigma**2 / 2)
    return Spread(middle, middle * math.sqrt(max(math.exp(min(sigma**2, LARGEST)) - 1, 0.0)))


def _poisson(rate: float) -> Spread:
    return Spread(rate, math.sqrt(abs(rate)))


def _binomial(count: float, chance: float) -> Spread:
    return Spread(count * chance, math.sqrt(abs(count * chance * (1 - chance))))


def _normal(mean: float, std: float) -> Spread:
    return Spread(mean, abs(std))


# by name: the arguments that shape the numbers, with their defaults, and what these are
Law = tuple[tuple[tuple[str, float | None], ...], Callable[..., Spread]]
NORMAL: Law = (("loc", 0.0), ("scale", 1.0)), _normal
UNIFORM: Law = (("low", 0.0), ("high", 1.0)), _uniform
OF_NUMPY: dict[str, Law] = {
    "normal": NORMAL, "laplace": NORMAL, "uniform": UNIFORM, "logistic": NORMAL,
    "exponential": ((("scale", 1.0),), lambda s: Spread(s, s)),
    "poisson": ((("lam", 1.0),), _poisson),
    "gamma": ((("shape", None), ("scale", 1.0)), _gamma),
    "beta": ((("a", None), ("b", None)), _beta),
    "lognormal": ((("mean", 0.0), ("sigma", 1.0)), _lognormal),
    "binomial": ((("n", None), ("p", None)), _binomial),
    "chisquare": ((("df", None),), lambda k: Spread(k, math.sqrt(2 * abs(k)))),
}  # fmt: skip
OF_PYTHON: dict[str, Law] = {
    "random.gauss": NORMAL, "random.normalvariate": NORMAL, "random.random": ((), UNIFORM[1]),
    "random.uniform": UNIFORM, "random.expovariate": ((("lambd", 1.0),),
                                                      lambda r: Spread(1 / r, 1 / r)),
    "random.lognormvariate": OF_NUMPY["lognormal"], "random.betavariate": OF_NUMPY["beta"],
    "random.gammavariate": OF_NUMPY["gamma"],
}  # fmt: skip
STANDARD = {"randn": UNIT, "standard_normal": UNIT, "randn_like": UNIT}
UNITS = frozenset({"rand", "random", "random_sample", "rand_like"})
WHOLE = frozenset({"randint", "integers"})
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator",
              "random.Random")  # fmt: skip

Asked = Callable[[Value], Spread | None]


def of_draw(value: Result, spread_of: Asked) -> Spread | None:
    """Return what random numbers are like; None where a value is no draw, or not a known one."""
    name = value.maker.rsplit(".", 1)[-1]
    is_rng = isinstance(value.receiver, Result) and value.receiver.maker in GENERATORS
    is_python = is_rng and getattr(value.receiver, "maker", "") == "random.Random"
    known = f"random.{name}" if is_python else value.maker
    if known in OF_PYTHON:
        wanted, law = OF_PYTHON[known]
        return _uniform(0, 1) if not wanted else _shaped(value, wanted, law, spread_of)
    if not is_rng and not value.maker.startswith(("numpy.random.", "torch.")):
        return None
    if name in STANDARD:
        return STANDARD[name]
    if name in UNITS:
        return _uniform(0, 1)
    if name in WHOLE:
        return _whole(value, spread_of)
    if name in OF_NUMPY and not value.maker.startswith("torch."):
        return _shaped(value, *OF_NUMPY[name], spread_of)
    return None


def _shaped(
    value: Result, wanted: Sequence[tuple[str, float | None]], law: Callable[..., Spread],
    spread_of: Asked,
) -> Spread | None:  # fmt: skip
    """Return the spread of a draw whose parameters may be spread themselves."""
    found: list[Spread] = []
    for place, (name, default) in enumerate(wanted):
        given = value.args[place] if place < len(value.args) else value.kwargs.get(name)
        known = spread_of(given) if given is not None else None
        if given is None and default is not None:
            known = Spread(default, 0.0)
        if known is None:
            return None
        found.append(known)
    made = law(*(s.mean for s in found))
    return Spread(made.mean, math.hypot(made.std, found[0].std if found else 0.0))


def _whole(value: Result, spread_of: Asked) -> Spread | None:
    bounds = [a for a in value.args[:2] if isinstance(a, Known) and isinstance(a.value, int)]
    if "high" in value.kwargs:
        bounds = [*bounds[:1], *([h] if isinstance(h := value.kwargs["high"], Known) else [])]
    numbers = [s.mean for b in bounds if (s := spread_of(b)) is not None]
    if not numbers:
        return None
    return _uniform(*(numbers if len(numbers) == 2 else (0.0, numbers[0])))


def _added(a: Spread, b: Spread) -> Spread:
    return Spread(a.mean + b.mean, math.hypot(a.std, b.std))


def _subtracted(a: Spread, b: Spread) -> Spread:
    return Spread(a.mean - b.mean, math.hypot(a.std, b.std))


def _multiplied(a: Spread, b: Spread) -> Spread:
    mean = a.mean * b.mean
    square = (a.mean**2 + a.std**2) * (b.mean**2 + b.std**2)
    return Spread(mean, math.sqrt(max(square - mean**2, 0.0)))


def _divided(a: Spread, b: Spread) -> Spread | None:
    if abs(b.mean) <= b.std or b.mean == 0:
        return None  # what is divided by numbers about zero may be anything
    return _multiplied(a, Spread(1 / b.mean, b.std / b.mean**2))


def _powered(a: Spread, b: Spread) -> Spread | None:
    if b.std or not 0 <= b.mean <= 4 or (a.mean < 0 and b.mean % 1):
        return None
    if b.mean == 2:
        return _multiplied(a, a) if not a.std else Spread(a.mean**2 + a.std**2, 2 * a.size * a.std)
    size = a.size**b.mean
    return Spread(size, size * b.mean * a.std / max(a.size, 1e-9))


ARITHMETIC: dict[str, Callable[[Spread, Spread], Spread | None]] = {
    "add": _added, "sub": _subtracted, "mul": _multiplied, "div": _divided, "truediv": _divided,
    "pow": _powered, "maximum": lambda a, b: a if a.mean > b.mean else b,
    "minimum": lambda a, b: a if a.mean < b.mean else b,
}  # fmt: skip


def _logged(a: Spread) -> Spread | None:
    if a.mean <= 0:
        return None
    return Spread(math.log(a.mean), min(a.std / a.mean, 2.0))


def _exponential(a: Spread) -> Spread | None:
    return _lognormal(a.mean, a.std) if a.mean + a.std**2 < LARGEST else None


FUNCTIONS: dict[str, Callable[[Spread], Spread | None]] = {
    "neg": lambda a: Spread(-a.mean, a.std),
    "abs": lambda a: Spread(a.size, a.std),
    "sin": lambda a: Spread(0.0, 0.7), "cos": lambda a: Spread(0.0, 0.7),
    "tanh": lambda a: Spread(math.tanh(a.mean), min(a.std, 1.0)),
    "sigmoid": lambda a: Spread(0.5, min(a.std, 0.5)),
    "sqrt": lambda a: Spread(math.sqrt(a.size), a.std / max(2 * math.sqrt(a.size), 1e-9)),
    "square": lambda a: Spread(a.mean**2 + a.std**2, 2 * a.size * a.std),
    "log": _logged, "log1p": lambda a: _logged(Spread(a.mean + 1, a.std)),
    "log10": _logged, "log2": _logged, "exp": _exponential, "relu": lambda a: a,
}  # fmt: skip
