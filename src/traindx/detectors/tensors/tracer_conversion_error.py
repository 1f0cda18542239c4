from traindx.analysis.errors.call_messages import TRACED_VALUE
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """A compiled function uses a traced value as a concrete number.

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
    yield from findings(run, TRACED_VALUE)


FIRES = {
    "a branch": failed(
        "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with "
        "shape bool[].\nThe error occurred while tracing the function step at train.py:12 for jit.",
        "if loss > 10:",
    ),
    "a call of numpy": failed(
        "jax.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() "
        "was called on traced array with shape float32[8]."
    ),
    "a graph of TensorFlow": failed(
        "tensorflow.python.framework.errors_impl.OperatorNotAllowedInGraphError: Using a symbolic "
        "`tf.Tensor` as a Python `bool` is not allowed."
    ),
}

SILENT = {
    "near miss: torch's tensor with several values": failed(
        "RuntimeError: Boolean value of Tensor with more than one value is ambiguous"
    ),
    "another error": failed("KeyError: 'label'"),
}
