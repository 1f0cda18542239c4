"""Whose code a frame is in: the user's, or a library's, the interpreter's, a launcher's."""

from __future__ import annotations

import re

from traindx.model.run import Failure, Frame

FOREIGN = re.compile(
    r"""(?:^|/)(?:site-packages|dist-packages)/
    |/lib(?:64)?/python\d|/python\d+/lib/|/(?:ana|mini)conda\d?/(?:envs/[^/]+/)?lib/
    |^(?:python\d*(?:\.\d+)?|Lib)/[^/]+\.py$
    |(?:^|/)torch/(?:_|nn/|autograd/|optim/|utils/|distributed/|cuda/|multiprocessing/|fx/|jit/
        |amp/|serialization\.py|functional\.py|tensor\.py|hub\.py|onnx/|backends/|overrides\.py)
    |(?:^|/)traindx/(?:recorder|watching)|(?:^|/)python/ray/|/torchinductor_|(?:^|/)multiprocessing/(?:
        spawn|process|pool|popen_\w+|reduction|queues|context|connection|synchronize)\.py$
    |^\.{3}/?(?:mmcv|mmengine|torch|torchvision|transformers|accelerate|deepspeed|peft|datasets
        |pytorch_lightning|lightning|keras|tensorflow|jax|flax)/
    |(?:^|/)s?bin/[^/.]+$|\.exe/__main__\.py$|(?:^|/)(?:runpy|threading)\.py$
    """,
    re.VERBOSE | re.IGNORECASE,
)
GENERATED = ("<frozen ", "<eval_with_key>", "<__array_function__", "<decorator-gen", "<attrs ",
             "<torch_package", "<unknown", "<built-in")  # fmt: skip


def own_frames(failure: Failure) -> tuple[Frame, ...]:
    """Return the frames in the user's own code, outermost first."""
    inner_frames = (*failure.frames[1:], None)
    return tuple(
        frame
        for frame, inner in zip(failure.frames, inner_frames, strict=False)
        if not _is_foreign(frame) and not _is_bootstrap(frame, inner)
    )


def _is_foreign(frame: Frame) -> bool:
    if frame.file.startswith(GENERATED):
        return True
    return FOREIGN.search(frame.file.replace("\\", "/")) is not None


def _is_bootstrap(frame: Frame, inner: Frame | None) -> bool:
    """Tell whether a frame is the command line with which multiprocessing starts a process."""
    return frame.file == "<string>" and inner is not None and inner.function == "spawn_main"
