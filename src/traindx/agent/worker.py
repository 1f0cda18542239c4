"""One process that calls tools for the server: a call that hangs or crashes takes only it down.

It reads a request per line from standard input and writes an answer per line to what was standard
output when it started; anything else that prints goes to standard error.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import traceback
from threading import Thread
from typing import IO, Any

from traindx.agent import tools
from traindx.agent.granted_folders import Roots
from traindx.errors import TraindxError

LOOK_EVERY_S = 1.0


def main() -> None:
    """Answer requests until there are no more."""
    Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    wire = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())  # whoever reads it must not take the next request
    serve(requests, wire)


def end_with(parent: int) -> None:
    """End this process once the server is gone: nobody waits for the answer any more."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_S)
    os._exit(1)


def serve(requests: IO[bytes], wire: IO[bytes]) -> None:
    """Answer each line of requests with a line."""
    for line in requests:
        answer = json.dumps(answer_to(json.loads(line)), allow_nan=False)
        try:
            wire.write(answer.encode() + b"\n")
            wire.flush()
        except BrokenPipeError:  # the server is gone
            return


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what the caller can mend is an error, anything else is ours and is said so."""
    try:
        roots = Roots.of(request["roots"])
        answer = tools.call(request["tool"], roots, request["arguments"])
    except TraindxError as error:
        return {"error": str(error)}
    except Exception as error:  # one bad call must not cost the assistant the next ones
        traceback.print_exc()
        kind = f"{type(error).__name__}: {error}"[:300]
        return {"error": f"traindx failed on this: {kind}. That is a bug of traindx"}
    png = None if answer.png is None else base64.b64encode(answer.png).decode()
    return {"data": answer.data, "png": png}
