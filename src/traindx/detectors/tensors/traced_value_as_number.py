"""A value that JAX or TensorFlow only traces was asked for its number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

BRANCH = re.compile(
    r"Attempted boolean conversion of traced array|problem arose with the `bool` function"
    r"|[Uu]sing a (?:symbolic )?`?tf\.Tensor`? as a Python `?bool`? is not allowed"
)
ARRAY = re.compile(
    r"__array__\(\) method was called on (?:the JAX Tracer object|traced array)"
    r"|numpy\.ndarray conversion method __array__\(\) was called|NumPy array conversion of"
    r"|Cannot convert a symbolic (?:tf\.)?(?:Tensor|Keras input)"
)
LEAK = re.compile(r"Encountered an unexpected tracer")
NUMBER = re.compile(
    r"Abstract tracer value encountered where concrete value is expected"
    r"|Shapes must be 1D sequences of concrete values|concrete value was not available in Python"
    r"|TracerIntegerConversionError|Array boolean indices must be concrete"
)
TRACED_AT = re.compile(r"tracing the function (\S+) at (\S+?):(\d+)")


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A compiled function asks a traced value for its number.

    ## What it detects
    JAX's ConcretizationTypeError, TracerBoolConversionError, TracerArrayConversionError and
    UnexpectedTracerError, and TensorFlow's "using a tf.Tensor as a Python bool": an `if`, a shape,
    an index or a call of numpy on a value that has none while the function is compiled.

    ## Why it matters
    While a function is traced there are shapes and types only; Python cannot branch on the rest.

    ## What to do
    A branch: `jax.lax.cond` or `jnp.where`. A size or a flag: `static_argnums`. A call of numpy:
    the same function of `jnp`. A value kept from inside: return it instead.

    ## When it is wrong
    A library that does it inside of its own code was made for another version of JAX.
    """
    hit = match_root(run, LEAK, BRANCH, ARRAY, NUMBER)
    if hit is None:
        return
    failure, found = hit
    said = {
        LEAK: "is kept beyond the function that made it",
        BRANCH: "decides a branch in Python",
        ARRAY: "is given to numpy",
        NUMBER: "is used where a number must be known",
    }[found.re]
    where = TRACED_AT.search(failure.message)
    inside = f" while {where[1]} ({where[2]}:{where[3]}) is compiled" if where is not None else ""
    claim = f"A traced value {said}{inside}"
    yield explain(run, failure, claim, shows="api-misuse")


FIRES = {
    "a branch": make_failed_run(
        "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with "
        "shape bool[].\nThe error occurred while tracing the function step at train.py:12 for jit.",
        "if loss > 10:",
    ),
    "a call of numpy": make_failed_run(
        "jax.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() "
        "was called on traced array with shape float32[8]."
    ),
    "a graph of TensorFlow": make_failed_run(
        "tensorflow.python.framework.errors_impl.OperatorNotAllowedInGraphError: Using a symbolic "
        "`tf.Tensor` as a Python `bool` is not allowed."
    ),
}

SILENT = {
    "near miss: torch's tensor with several values": make_failed_run(
        "RuntimeError: Boolean value of Tensor with more than one value is ambiguous"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
