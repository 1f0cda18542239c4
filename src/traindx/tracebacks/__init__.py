"""Exceptions in a text: tracebacks, bare errors and crashes, in any of the forms they are printed.

Failures come in the order of appearance, with one exception: within one chain the root comes first.
Python prints chained exceptions in that order. Where a wrapper is printed around its cause (a data
loader's worker, a spawned process, an exception group, a Ray task), it follows the cause here.
"""

from __future__ import annotations

from traindx.model.run import Failure
from traindx.tracebacks.bare_lines import split_streams
from traindx.tracebacks.exception_messages import ExceptionBlock
from traindx.tracebacks.frame_owner import own_frames
from traindx.tracebacks.stream import Chain, read_stream

__all__ = ["own_frames", "parse_failures"]


def parse_failures(text: str, artifact: str, first_line: int = 1) -> tuple[Failure, ...]:
    """Return every exception in a text, located at its ``Type: message`` line.

    The type is empty where the text is cut off before naming it. An exception that Python says it
    ignored, and a warning, is no failure.
    """
    chains: list[Chain] = []
    for lines in split_streams(text, first_line):
        chains.extend(read_stream(lines))
    chains.sort(key=lambda chain: chain.start)
    return tuple(_failure(b, artifact) for chain in chains for b in chain.ordered())


def _failure(block: ExceptionBlock, artifact: str) -> Failure:
    return Failure(
        block.type, block.message, artifact, f"line {block.line}", block.frames, block.rank
    )
