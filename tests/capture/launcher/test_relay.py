"""The relay at its limits: a slow reader, a process that is left behind, a reader that is gone."""

from __future__ import annotations

import os
import time

import pytest

from traindx.capture.launcher import relay as relaying
from traindx.capture.launcher.channels import Channel
from traindx.capture.launcher.relay import Relay
from traindx.capture.launcher.voice import Voice

STDOUT = 1


def read_all(file: int) -> bytes:
    read = b""
    while piece := os.read(file, 1 << 16):
        read += piece
    return read


def test_what_was_written_before_the_end_reaches_a_slow_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relaying, "LONGEST_S", 0.01)
    monkeypatch.setattr(relaying, "CHUNK_BYTES", 1 << 12)
    outlet, inlet = os.pipe()
    slow, target = os.pipe()
    os.set_blocking(inlet, False)
    written = 0
    while True:
        try:
            written += os.write(inlet, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(slow, False)
    kept: list[bytes] = []
    relay = Relay(Channel(outlet, inlet, target, (STDOUT,)), kept.append, Voice())
    relay.start()
    relay.finish()  # somebody still holds the inlet
    read = 0
    while not relay.wait(0.02):
        try:
            read += len(os.read(slow, 1 << 13))
        except BlockingIOError:
            continue
    os.close(target)
    os.set_blocking(slow, True)
    read += len(read_all(slow))
    os.close(slow)
    os.close(inlet)
    assert read == written == sum(map(len, kept))
    assert relay.is_left_open


def test_a_reader_that_is_gone_ends_the_channel() -> None:
    outlet, inlet = os.pipe()
    reader, target = os.pipe()
    os.close(reader)
    relay = Relay(Channel(outlet, inlet, target, (STDOUT,)), lambda data: None, Voice())
    relay.start()
    os.write(inlet, b"lost")
    assert relay.wait(30)
    with pytest.raises(BrokenPipeError):
        os.write(inlet, b"the command learns of it")
    relay.finish()
    for file in (inlet, target):
        os.close(file)


def test_a_full_disk_below_our_output_does_not_end_the_command(
    capfd: pytest.CaptureFixture[str],
) -> None:
    outlet, inlet = os.pipe()
    target = os.open("/dev/full", os.O_WRONLY)
    kept: list[bytes] = []
    relay = Relay(Channel(outlet, inlet, target, (STDOUT,)), kept.append, Voice())
    relay.start()
    for piece in (b"one", b"two"):
        os.write(inlet, piece)
        time.sleep(0.05)
    os.close(inlet)
    assert relay.wait(30)
    relay.finish()
    os.close(target)
    assert b"".join(kept) == b"onetwo"
    assert capfd.readouterr().err.count("output of the command is lost: No space left") == 1
