"""A Messages API on loopback that answers from a script, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Request = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """An answer that is an HTTP error."""

    status: int
    kind: str
    message: str = "scripted"


Reply = Sequence[Block] | Refusal
Step = Reply | Callable[[Request], Reply]


def says(text: str) -> list[Block]:
    return [{"type": "text", "text": text}]


def calls(name: str, /, **arguments: Any) -> list[Block]:
    return [{"type": "tool_use", "id": "", "name": name, "input": arguments}]


@dataclass
class Script:
    """The steps that are still to come, and the requests so far; the last step repeats."""

    steps: list[Step]
    requests: list[Request] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> tuple[int, Reply]:
        with self.lock:
            self.requests.append(request)
            number = len(self.requests)
            step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        return number, step(request) if callable(step) else step

    @property
    def tools_offered(self) -> set[str]:
        return {tool["name"] for request in self.requests for tool in request.get("tools", ())}

    @property
    def results(self) -> list[Block]:
        """Return every tool result that the last request carried."""
        return [b for b in blocks_of(self.requests[-1]) if b["type"] == "tool_result"]


def blocks_of(request: Request) -> list[Block]:
    blocks: list[Block] = []
    for message in request["messages"]:
        content = message["content"]
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks


def text_of(request: Request) -> str:
    """Return all text that a request shows to the model after its instructions."""
    texts = []
    for block in blocks_of(request):
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_result":
            content = block["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            texts += [part.get("text", "") for part in parts]
    return "\n".join(texts)


@contextmanager
def serving(*steps: Step) -> Iterator[Script]:
    script = Script(list(steps))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.paths.append(self.path)
            if not self.path.startswith("/v1/messages"):
                self._send(404, "application/json", b"{}")
                return
            number, reply = script.answer(json.loads(body))
            if isinstance(reply, Refusal):
                error = {"type": reply.kind, "message": reply.message}
                told = json.dumps({"type": "error", "error": error}).encode()
                self._send(reply.status, "application/json", told)
            else:
                self._send(200, "text/event-stream", b"".join(_events(reply, number)))

        def _send(self, status: int, kind: str, body: bytes) -> None:
            with suppress(ConnectionError):  # whoever asked may have given up
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def do_GET(self) -> None:
            script.paths.append(self.path)
            self._send(404, "application/json", b"{}")

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _events(reply: Sequence[Block], number: int) -> Iterator[bytes]:
    asks = any(block["type"] == "tool_use" for block in reply)
    message = {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    }
    yield _event("message_start", message=message)
    for index, block in enumerate(reply):
        yield from _block_events(block, index, f"toolu_{number:04}_{index}")
    ending = {"stop_reason": "tool_use" if asks else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage={"output_tokens": 20})
    yield _event("message_stop")


def _block_events(block: Block, index: int, identity: str) -> Iterator[bytes]:
    if block["type"] == "text":
        start: Block = {"type": "text", "text": ""}
        delta: Block = {"type": "text_delta", "text": block["text"]}
    else:
        start = {"type": "tool_use", "id": identity, "name": block["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield _event("content_block_start", index=index, content_block=start)
    yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
