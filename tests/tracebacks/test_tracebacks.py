"""Exceptions are found in every form in which runs leave them behind, and nowhere else."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx.model.run import Failure, Frame
from traindx.tracebacks import own_frames, parse_failures


def parse(text: str) -> tuple[Failure, ...]:
    return parse_failures(text, "run.log")


def one(text: str) -> Failure:
    failures = parse(text)
    assert len(failures) == 1, failures
    return failures[0]


def brief(text: str) -> list[tuple[str, str]]:
    return [(f.type, f.message) for f in parse(text)]


def run_script(folder: Path, code: str, *arguments: str) -> str:
    script = folder / "train.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, *arguments, str(script)],
        capture_output=True, text=True, timeout=300, cwd=folder, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def raised(act: Callable[[], object]) -> str:
    try:
        act()
    except Exception:
        return traceback.format_exc()
    raise AssertionError("nothing was raised")


PLAIN = """\
Epoch 1, loss 0.53
Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    main()
  File "/home/me/train.py", line 8, in main
    loss = model(x)
           ^^^^^^^^
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)
"""


# --- plain tracebacks -----------------------------------------------------------------------------


def test_plain_traceback() -> None:
    assert one(PLAIN) == Failure(
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)",
        "run.log",
        "line 8",
        (
            Frame("/home/me/train.py", 12, "<module>", "main()"),
            Frame("/home/me/train.py", 8, "main", "loss = model(x)"),
        ),
    )


def test_first_line_shifts_the_locator() -> None:
    assert parse_failures(PLAIN, "run.log", first_line=101)[0].locator == "line 108"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda t: t.replace("\n", "\r\n"), id="crlf"),
        pytest.param(lambda t: textwrap.indent(t, "    "), id="indented"),
        pytest.param(lambda t: textwrap.indent(t, "> ", lambda _: True), id="quoted"),
        pytest.param(lambda t: f"```python\n{t}```\nthanks!", id="fenced"),
        pytest.param(lambda t: "".join(f"{x.lstrip()}" for x in t.splitlines(True)), id="flat"),
        pytest.param(lambda t: t.replace("RuntimeError", "\x1b[0;31mRuntimeError\x1b[0m"), id="ansi"),
        pytest.param(lambda t: t.replace("RuntimeError", "[0;31mRuntimeError[0m"), id="lost escape"),
        pytest.param(lambda t: t.replace("Traceback", "  3%|▎    | 3/90 [00:01<?]Traceback"), id="bar"),
        pytest.param(lambda t: t.replace("Traceback", "\r 1%|▎\r 2%|▎\rTraceback"), id="returns"),
        pytest.param(lambda t: t + "\nEpoch 2\n", id="log after blank"),
        pytest.param(lambda t: t.replace("\n", " " * 40 + "\n"), id="padded"),
        pytest.param(lambda t: t + "Epoch 2: loss 0.1\n", id="log at once"),
        pytest.param(lambda t: t + "2024-01-01 10:00:00 INFO bye\n", id="stamped log at once"),
        pytest.param(lambda t: t + "(base) me@gpu01:~/x$ ls\n", id="prompt"),
        pytest.param(lambda t: t + "srun: error: gpu01: task 0: Exited with exit code 1\n", id="srun"),
        pytest.param(lambda t: t + "Killing subprocess 31867\n", id="launcher"),
        pytest.param(lambda t: t.replace("\n", "\n\n"), id="double spaced"),
        pytest.param(lambda t: t + "wandb: Waiting for W&B process to finish\n", id="wandb"),
        pytest.param(lambda t: t + "{'loss': 1.0, 'epoch': 1}\n", id="trainer dict"),
        pytest.param(lambda t: t.replace("    main()\n", "    main()\nEpoch: 3\n"), id="stdout inside"),
        pytest.param(lambda t: t.replace("Runtime", "saving checkpoint ...\nRuntime"), id="stdout before"),
        pytest.param(
            lambda t: t.replace("    main()\n", "    main()\n10:00:00 INFO worker idle\n"),
            id="log inside",
        ),
        pytest.param(lambda t: t.replace("Traceback", "ERROR:root:failed\nTraceback"), id="logging"),
        pytest.param(
            lambda t: t.replace("Traceback", "2024-01-01 10:00:00,123 - root - ERROR - Traceback"),
            id="stamp on the first line",
        ),
        pytest.param(
            lambda t: t.replace("Traceback", "Exception in thread Thread-1:\nTraceback"), id="thread"
        ),
    ],
)  # fmt: skip
def test_dressed_traceback(change: Callable[[str], str]) -> None:
    failure = one(change(PLAIN))
    assert failure.type == "RuntimeError"
    assert failure.message == "mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)"
    assert [f.line for f in failure.frames] == [12, 8]
    assert [f.code for f in failure.frames] == ["main()", "loss = model(x)"]


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[rank3]: ", 3),
        ("[rank3]:", 3),
        ("[default3]:", 3),
        ("[Rank 3] ", 3),
        ("3: ", 3),
        (" 3: ", 3),
        ("[1,3]<stderr>:", 3),
        ("[1,3]<stderr>: ", 3),
        ("(RayTrainWorker pid=123) ", None),
        ("(pid=123, ip=10.0.0.7) ", None),
        ("\x1b[36m(RayTrainWorker pid=123, ip=10.0.0.7)\x1b[0m [rank3]: ", 3),
        ("trainer-worker-3  | ", None),
        ("[pod/job-3/main] ", None),
        ("worker-3: ", None),
        ("2024-01-01T10:00:00.1234567Z ", None),
        ("2024-01-01 10:00:00 ERROR ", None),
        ("2024-01-01 10:00:00,123 - root - ERROR - ", None),
        ("2024-01-01 10:00:00.123 | ERROR    | __main__:main:12 - ", None),
        ("[2024-01-01 10:00:00,123] [ERROR] [engine.py:12:f] ", None),
        ("01/02/2024 10:00:00 - ERROR - __main__ - ", None),
        ("E0708 10:00:00.000000 140 torch/distributed/run.py:826] ", None),
        ("[ERROR|trainer.py:12] 2024-01-01 10:00:00,123 >> ", None),
        ("Jan  2 10:00:00 gpu01 python[123]: ", None),
        ("ERROR:root:", None),
        ("E1115 21:57:28.962000 21459 torch/_subclasses/fake_tensor.py:3090] [0/0] ", None),
        ("stderr: ", None),
        ("2022-03-22 10:41:28,079\tERROR function_runner.py:281 -- ", None),
        ("(MapBatches(f.g) pid=12461) 17-Jan-23 17:21:19 ", None),
    ],
)
def test_prefix_on_every_line(prefix: str, rank: int | None) -> None:
    failure = one(textwrap.indent(PLAIN, prefix, lambda _: True))
    assert failure.message == "mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)"
    assert [f.code for f in failure.frames] == ["main()", "loss = model(x)"]
    assert failure.rank == rank
    assert failure.locator == "line 8"


def test_interleaved_ranks() -> None:
    texts = [PLAIN.replace("4x57600", f"{r}x9").splitlines() for r in range(3)]
    mixed = [f"[rank{r}]: {lines[i]}" for i in range(8) for r, lines in enumerate(texts)]
    failures = parse("\n".join(mixed))
    assert [(f.rank, f.message[-13:]) for f in failures] == [
        (0, "x9 and 64x128)"[1:]), (1, "x9 and 64x128)"[1:]), (2, "x9 and 64x128)"[1:]),
    ]  # fmt: skip
    assert all(len(f.frames) == 2 and f"({f.rank}x9" in f.message for f in failures)
    assert [f.locator for f in failures] == ["line 22", "line 23", "line 24"]


# --- messages -------------------------------------------------------------------------------------

DEVICE_MESSAGE = """\
CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1.
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.

Exception raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:44 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f in libc10.so)
frame #1: <unknown function> + 0x1e3e5 (0x7f in libc10_cuda.so)"""


@pytest.mark.parametrize("is_headed", [True, False])
def test_cuda_message_with_native_tail(is_headed: bool) -> None:
    head = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\n' if is_headed else ""
    text = f"{head}RuntimeError: {DEVICE_MESSAGE}\n\nsaving logs to disk\n"
    assert brief(text) == [("RuntimeError", DEVICE_MESSAGE)]


def test_nccl_message_with_its_own_error_names() -> None:
    message = (
        "NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of memory'"
    )
    text = f"torch.distributed.DistBackendError: {message}\n[W1105 12:00:00.123456 a.cpp:1] Warning: bye"
    text = textwrap.indent(text, "[rank0]: ")
    assert brief(text) == [("torch.distributed.DistBackendError", message)]


def test_bare_error_leaves_the_log_alone() -> None:
    text = "RuntimeError: CUDA out of memory.\nskipping this batch\nloss 0.3\n"
    assert brief(text) == [("RuntimeError", "CUDA out of memory.")]


def test_adjacent_errors_are_two() -> None:
    text = "RuntimeError: one\nValueError: two\n"
    assert brief(text) == [("RuntimeError", "one"), ("ValueError", "two")]


def test_message_and_frames_are_bounded() -> None:
    keys = "".join(f'\tMissing key(s): "layer.{i}.weight"\n' for i in range(5000))
    frames = "".join(f'  File "t.py", line {i}, in f\n    f()\n' for i in range(1, 1001))
    failure = one(f"Traceback (most recent call last):\n{frames}RuntimeError: Error(s):\n{keys}")
    assert len(failure.message) == 20_000
    assert [f.line for f in failure.frames] == [*range(1, 21), *range(821, 1001)]


def test_message_on_one_endless_line() -> None:
    assert len(one("ValueError: " + "x" * 100_000).message) <= 20_000


def test_code_and_next_frame_joined_by_a_paste() -> None:
    text = PLAIN.replace("    main()\n", "    main()" + " " * 60)
    assert [f.line for f in one(text).frames] == [12, 8]


def test_note_and_locals_type() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
        "__main__.f.<locals>.Boom: broken\nsample 17 was in the batch\n"
    )
    assert brief(text) == [("__main__.f.<locals>.Boom", "broken\nsample 17 was in the batch")]


# --- chains, groups, wrappers ---------------------------------------------------------------------


def test_chained(tmp_path: Path) -> None:
    text = run_script(
        tmp_path,
        """
        try:
            try:
                {}["loss"]
            except KeyError as error:
                raise ValueError("no loss") from error
        except ValueError:
            raise RuntimeError("step failed\\n  in detail")
        """,
    )
    assert brief(text) == [
        ("KeyError", "'loss'"), ("ValueError", "no loss"), ("RuntimeError", "step failed\n  in detail"),
    ]  # fmt: skip
    assert [own_frames(f)[0].line for f in parse(text)] == [4, 6, 8]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with 3.11")
def test_exception_group(tmp_path: Path) -> None:
    text = run_script(
        tmp_path,
        """
        def failed(kind, *, cause=None):
            try:
                raise kind("x") from cause
            except Exception as error:
                return error

        inner = ExceptionGroup("inner", [failed(TypeError), OSError("never raised")])
        chained = failed(IndexError, cause=failed(KeyError))
        raise ExceptionGroup("outer", [failed(ValueError), inner, chained])
        """,
    )
    assert brief(text) == [
        ("ValueError", "x"),
        ("TypeError", "x"),
        ("OSError", "never raised"),
        ("ExceptionGroup", "inner (2 sub-exceptions)"),
        ("KeyError", "'x'"),
        ("IndexError", "x"),
        ("ExceptionGroup", "outer (3 sub-exceptions)"),
    ]
    assert [len(f.frames) for f in parse(text)] == [1, 1, 0, 0, 1, 1, 1]
    assert brief(text + text) == brief(text) * 2


def test_data_loader_worker(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = run_script(
        tmp_path,
        """
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                try:
                    return {}["image"]
                except KeyError as error:
                    raise RuntimeError("bad sample") from error

        if __name__ == "__main__":
            for batch in DataLoader(Images(), num_workers=1):
                pass
        """,
    )
    assert brief(text) == [
        ("KeyError", "'image'"),
        ("RuntimeError", "bad sample"),
        ("RuntimeError", "Caught RuntimeError in DataLoader worker process 0."),
    ]
    assert [own_frames(f)[-1].function for f in parse(text)] == [
        "__getitem__", "__getitem__", "<module>",
    ]  # fmt: skip


def test_handler_of_a_wrapper_comes_after_it() -> None:
    frame = '  File "t.py", line 1, in f\n    f()\n'
    text = (
        f"Traceback (most recent call last):\n{frame}KeyError: Caught KeyError in replica 1 on device 1.\n"
        f"Original Traceback (most recent call last):\n{frame}KeyError: 'a'\n\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        f"Traceback (most recent call last):\n{frame}ValueError: outer\n"
    )  # fmt: skip
    assert [m for _, m in brief(text)] == [
        "'a'", "Caught KeyError in replica 1 on device 1.", "outer",
    ]  # fmt: skip


def test_spawned_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = run_script(
        tmp_path,
        """
        import torch.multiprocessing as mp

        def work(index):
            if index == 1:
                raise ValueError("worker failed")

        if __name__ == "__main__":
            mp.spawn(work, nprocs=2)
        """,
    )
    inner, outer = parse(text)
    assert (inner.type, inner.message, inner.rank) == ("ValueError", "worker failed", 1)
    assert outer.type == "torch.multiprocessing.spawn.ProcessRaisedException"
    assert outer.message == "Process 1 terminated with the following error"
    assert outer.rank is None


def test_pool_and_thread_and_process(tmp_path: Path) -> None:
    text = run_script(
        tmp_path,
        """
        import multiprocessing, sys, threading

        def work(i):
            raise ValueError(f"sample {i}")

        if __name__ == "__main__":
            thread = threading.Thread(target=work, args=(1,))
            thread.start()
            thread.join()
            process = multiprocessing.Process(target=work, args=(2,))
            process.start()
            process.join()
            sys.stderr.flush()
            with multiprocessing.Pool(1) as pool:
                pool.map(work, [3])
        """,
    )
    assert brief(text) == [("ValueError", f"sample {i}") for i in (1, 2, 3, 3)]
    assert all(own_frames(f)[-1].code for f in parse(text))


def test_ray_task() -> None:
    text = """\
Traceback (most recent call last):
  File "tune.py", line 9, in <module>
    ray.get(train.remote())
ray.exceptions.RayTaskError(ValueError): ray::train() (pid=123, ip=10.0.0.7)
  File "tune.py", line 4, in train
    raise ValueError("bad config")
ValueError: bad config
"""
    assert brief(text) == [
        ("ValueError", "bad config"),
        ("ray.exceptions.RayTaskError(ValueError)", "ray::train() (pid=123, ip=10.0.0.7)"),
    ]


def test_compiler_backend() -> None:
    text = """\
Traceback (most recent call last):
  File "t.py", line 4, in f
    model(x)
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
AssertionError: conv only

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace

You can suppress this exception and fall back to eager by setting:
    import torch._dynamo
"""
    assert [t for t, _ in brief(text)] == [
        "AssertionError", "torch._dynamo.exc.BackendCompilerFailed",
    ]  # fmt: skip


# --- real interpreters ----------------------------------------------------------------------------


def test_recursion(tmp_path: Path) -> None:
    failure = one(run_script(tmp_path, "def f(x):\n    return f(x)\nf(1)\n"))
    assert failure.type == "RecursionError"
    assert failure.frames[-1].code == "return f(x)"


@pytest.mark.parametrize("code", ["print('a'\n", "if True:\nx = 1\n", "x = = 1\n"])
def test_syntax_error(tmp_path: Path, code: str) -> None:
    failure = one(run_script(tmp_path, code))
    assert failure.type in ("SyntaxError", "IndentationError")
    assert failure.frames[-1].function == ""
    assert Path(failure.frames[-1].file).name == "train.py"
    assert failure.message


def test_fatal_python_error(tmp_path: Path) -> None:
    code = """
    import ctypes
    def crash():
        ctypes.string_at(0)
    crash()
    """
    text = run_script(tmp_path, code, "-X", "faulthandler") + "Segmentation fault (core dumped)\n"
    failure = one(text)
    assert (failure.type, failure.message) == ("FatalPythonError", "Segmentation fault")
    assert [f.function for f in own_frames(failure)] == ["<module>", "crash"]


def test_ignored_exceptions_are_no_failures(tmp_path: Path) -> None:
    text = run_script(
        tmp_path,
        """
        import logging
        class Loader:
            def __del__(self):
                raise AssertionError("can only test a child process")
        Loader()
        logging.error("%d", "x")
        logging.warning("hm", stack_info=True)
        raise KeyError("real")
        """,
    )
    assert "Exception ignored" in text and "Logging error" in text and "Stack (most" in text
    assert brief(text) == [("KeyError", "'real'")]


def test_rich_traceback() -> None:
    console = import_module("rich.console").Console(file=io.StringIO(), width=100)

    def act() -> None:
        raise ValueError("wrong shape")

    try:
        act()
    except ValueError:
        console.print_exception()
    text = console.file.getvalue()
    failure = one(f"Epoch 1\n{text}done\n")
    assert failure.type == "ValueError"
    assert failure.message.startswith("wrong shape")
    assert failure.frames[-1].function == "act"
    assert failure.frames[-1].code == 'raise ValueError("wrong shape")'


def test_torch_errors() -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    small, large = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    acts: dict[str, Callable[[], object]] = {
        "mat1 and mat2 shapes cannot be multiplied": lambda: nn.Linear(3, 1)(torch.ones(2, 4)),
        "size mismatch for 0.weight": lambda: small.load_state_dict(large.state_dict()),
        "modified by an inplace operation": lambda: _in_place(torch),
        "element 0 of tensors does not require grad": lambda: torch.ones(1).backward(),
        "out of bounds": lambda: nn.functional.cross_entropy(torch.ones(1, 2), torch.tensor([5])),
    }
    for words, act in acts.items():
        text = raised(act)
        failure = one(f"start\n{text}\nEpoch 3\n")
        _, _, whole = text.partition(f"\n{failure.type}: ")
        assert words in failure.message
        assert failure.message == "\n".join(x.rstrip() for x in whole.strip().splitlines())
        assert own_frames(failure)[-1].file == __file__


def _in_place(torch: object) -> None:
    x = torch.ones(2, requires_grad=True)  # type: ignore[attr-defined]
    y = x.exp()
    y += 1
    y.sum().backward()


def test_torch_load_message(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"path": tmp_path}, tmp_path / "model.pt")
    text = raised(lambda: torch.load(tmp_path / "model.pt", weights_only=True))
    failure = parse(text)[-1]
    assert failure.type == "_pickle.UnpicklingError"
    assert "weights_only" in failure.message
    assert "Check the documentation of torch.load" in failure.message


def test_anomaly_warning_is_no_failure(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = run_script(
        tmp_path,
        """
        import torch
        torch.autograd.set_detect_anomaly(True)
        x = torch.zeros(1, requires_grad=True)
        (torch.sqrt(x) * 0).sum().backward()
        """,
    )
    assert "Traceback of forward call" in text
    assert [t for t, _ in brief(text)] == ["RuntimeError"]
    assert "nan values" in parse(text)[0].message


def test_compiler_names_the_users_code(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = run_script(
        tmp_path,
        """
        import torch

        @torch.compile(fullgraph=True, backend="eager")
        def step(x):
            if x.sum() > 0:
                return x
            return x + 1

        step(torch.ones(3))
        """,
    )
    failure = one(text)
    assert failure.type == "torch._dynamo.exc.Unsupported"
    assert "from user code" in failure.message
    assert own_frames(failure)[-1].code == "if x.sum() > 0:"


# --- notebooks ------------------------------------------------------------------------------------

DASHES = "-" * 75
IPYTHON_7 = f"""\
{DASHES}
RuntimeError                              Traceback (most recent call last)
<ipython-input-3-0c1f> in <module>
      1 model = Net()
----> 2 loss = model(x)
      3 loss.backward()

~/miniconda3/lib/python3.8/site-packages/torch/nn/modules/module.py in _call_impl(self, *input, **kwargs)
    725             result = self._slow_forward(*input, **kwargs)
    726         else:
--> 727             result = self.forward(*input, **kwargs)
    728         for hook in itertools.chain(

<ipython-input-2-77aa> in forward(self, x)
      8     def forward(self, x):
----> 9         return self.fc(x)

RuntimeError: mat1 dim 1 must match mat2 dim 0
"""
IPYTHON_8 = f"""\
{DASHES}
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 2
      1 model = Net()
----> 2 loss = model(x)

File ~/miniconda3/lib/python3.8/site-packages/torch/nn/modules/module.py:727, in Module._call_impl(self, *args, **kwargs)
    726 else:
--> 727     result = self.forward(*input, **kwargs)
    728 for hook in itertools.chain(

Cell In[2], line 9, in Net.forward(self, x)
      8 def forward(self, x):
----> 9     return self.fc(x)

RuntimeError: mat1 dim 1 must match mat2 dim 0
"""


@pytest.mark.parametrize("text", [IPYTHON_7, IPYTHON_8], ids=["7", "8"])
@pytest.mark.parametrize("tail", ["", "In [4]: x.shape\n", "\nepoch 2\n"])
def test_ipython(text: str, tail: str) -> None:
    failure = one(text + tail)
    assert (failure.type, failure.message) == ("RuntimeError", "mat1 dim 1 must match mat2 dim 0")
    assert [(f.line, f.code) for f in failure.frames] == [
        (2, "loss = model(x)"),
        (727, "result = self.forward(*input, **kwargs)"),
        (9, "return self.fc(x)"),
    ]
    assert [f.function.rpartition(".")[2] for f in own_frames(failure)][-1] == "forward"
    assert len(own_frames(failure)) == 2


def test_ipython_chain_and_input_style() -> None:
    text = f"""\
{DASHES}
KeyError                                  Traceback (most recent call last)
Input In [5], in <cell line: 3>()
      2 try:
----> 3     batch["loss"]

KeyError: 'loss'

During handling of the above exception, another exception occurred:

ValueError                                Traceback (most recent call last)
/tmp/ipykernel_17/123.py in <cell line: 1>()
----> 5     raise ValueError("no loss")

ValueError: no loss
"""
    failures = parse(text)
    assert [f.type for f in failures] == ["KeyError", "ValueError"]
    assert failures[0].frames == (Frame("Input In [5]", 3, "<module>", 'batch["loss"]'),)
    assert failures[1].frames[0].line == 5
    assert own_frames(failures[1]) == failures[1].frames


def test_ipython_cut_at_the_start() -> None:
    text = IPYTHON_8[IPYTHON_8.index("File ~") :]
    failure = one(text)
    assert failure.type == "RuntimeError"
    assert [f.line for f in failure.frames] == [727, 9]
    assert failure.frames[-1].code == "return self.fc(x)"


def test_ipython_as_forums_mangle_it() -> None:
    text = """\
RuntimeError Traceback (most recent call last)
in ()
7 "training.num_workers=0"
----> 9 run(opts=opts)

14 frames
/usr/local/lib/python3.7/dist-packages/mmf_cli/run.py in run(opts, predict)
132 config.device_id = 0
→ 133 main(configuration, predict=predict)
134

/content/train.py in main(configuration)
—> 56 trainer.train()

RuntimeError: mat1 dim 1 must match mat2 dim 0
"""
    failure = one(text)
    assert failure.message == "mat1 dim 1 must match mat2 dim 0"
    assert [f.line for f in failure.frames] == [133, 56]


def test_ipython_syntax_error() -> None:
    text = "  Cell In[1], line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed\n"
    failure = one(text)
    assert failure.frames == (Frame("Cell In[1]", 1, "", "x = ("),)


# --- pytest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["long", "short"])
def test_pytest_report(tmp_path: Path, style: str) -> None:
    (tmp_path / "test_x.py").write_text(
        "def f():\n    raise RuntimeError('shapes\\n  differ')\n\n"
        "def test_raise():\n    f()\n\ndef test_assert():\n    assert 1 == 2\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        f"--tb={style}",
        "test_x.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    failures = parse(done.stdout)
    assert brief(done.stdout)[0] == ("RuntimeError", "shapes\n  differ")
    assert [(Path(f.file).name, f.line) for f in failures[0].frames] == [
        ("test_x.py", 5), ("test_x.py", 2),
    ]  # fmt: skip
    assert [f.type for f in failures[1:]] == ["AssertionError"]
    assert failures[1].message == "assert 1 == 2"


# --- torchrun, written by torch 2.13 --------------------------------------------------------------

TORCHRUN = """\
W1115 21:45:54.897000 13923 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 13928 closing signal SIGTERM
E1115 21:45:54.898000 13923 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 13929) of binary: /srv/bin/python
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/srv/.venv/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=======================================================
kill.py FAILED
-------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-15_21:45:54
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 13928)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 13928
-------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-15_21:45:54
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 13929)  (SIGKILL)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 13929
=======================================================
"""
RECORDED = """\
  traceback : Traceback (most recent call last):
    File "/srv/.venv/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 367, in wrapper
      return f(*args, **kwargs)
             ^^^^^^^^^^^^^^^^^^
    File "/home/me/elastic.py", line 6, in main
      raise RuntimeError("boom on rank 1")
  RuntimeError: boom on rank 1
  
"""  # noqa: W293


def test_torchrun_summary() -> None:
    root, other = parse(TORCHRUN)
    assert (root.type, root.rank, root.locator) == ("ChildFailedError", 1, "line 25")
    assert "exitcode  : -9 (pid: 13929)  (SIGKILL)" in root.message
    assert "Signal 9 (SIGKILL)" in root.message
    assert (other.type, other.rank) == ("ChildFailedError", 0)
    assert len(root.frames) == 2
    assert own_frames(root) == ()


def test_torchrun_summary_without_its_traceback() -> None:
    start = TORCHRUN.index("[1]:")
    assert sorted(f.rank or 0 for f in parse(TORCHRUN[start:])) == [0, 1]


def test_torchrun_summary_with_the_childs_traceback() -> None:
    text = TORCHRUN.replace("  traceback : Signal 9 (SIGKILL) received by PID 13929\n", RECORDED)
    inner, child, other = parse(text)
    assert (inner.type, inner.message, inner.rank) == ("RuntimeError", "boom on rank 1", 1)
    assert own_frames(inner)[0].line == 6
    assert (child.rank, other.rank) == (1, 0)


# --- below Python ---------------------------------------------------------------------------------


def test_device_asserts_are_counted() -> None:
    at = "../aten/src/ATen/native/cuda/Loss.cu:242: nll_loss_forward_reduce_cuda_kernel_2d"
    lines = [
        f"{at}: block: [0,0,0], thread: [{i},0,0] Assertion `t >= 0 && t < n_classes` failed."
        for i in range(32)
    ]
    text = "\n".join(lines) + "\n" + PLAIN
    failures = parse(text)
    assert [f.type for f in failures] == ["DeviceAssert", "RuntimeError"]
    assert failures[0].message == f"{lines[0]} (first of 32 threads)"
    assert failures[0].locator == "line 1"
    between = PLAIN.replace("    main()\n", f"    main()\n{lines[0]}\n")
    assert [f.type for f in parse(between)] == ["RuntimeError", "DeviceAssert"]


def test_terminate() -> None:
    text = (
        "terminate called after throwing an instance of 'c10::Error'\n"
        "  what():  CUDA error: an illegal memory access was encountered\n"
        "CUDA kernel errors might be asynchronously reported\n"
        "Exception raised from f at a.cpp:1 (most recent call first):\n"
        "frame #0: x\n\nAborted (core dumped)\n"
    )
    failure = one(text)
    assert failure.type == "c10::Error"
    assert failure.message.startswith("CUDA error: an illegal memory access was encountered\nCUDA")
    assert failure.message.endswith("frame #0: x")


@pytest.mark.parametrize(
    ("text", "kind", "rank"),
    [
        ("Segmentation fault (core dumped)", "SegmentationFault", None),
        ("Segmentation fault: 11", "SegmentationFault", None),
        ("Killed", "Killed", None),
        ("[rank2]: Killed", "Killed", 2),
        ("Bus error (core dumped)", "BusError", None),
        ("zsh: killed     python train.py", "Killed", None),
        ("run.sh: line 3: 123 Segmentation fault      (core dumped) python x.py", "SegmentationFault", None),
        ("srun: error: gpu01: task 3: Segmentation fault (core dumped)", "SegmentationFault", 3),
        ("srun: error: gpu01: task 3: Out Of Memory", "Killed", 3),
        ("Aborted (core dumped)", "Aborted", None),
        ("    srun: error: n1: task 1: Segmentation fault (core dumped)", "SegmentationFault", 1),
    ],
)  # fmt: skip
def test_death_notice(text: str, kind: str, rank: int | None) -> None:
    failure = one(f"Epoch 1\n{text}\nbye\n")
    assert (failure.type, failure.rank) == (kind, rank)


# --- bare errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)", "RuntimeError"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "torch.cuda.OutOfMemoryError"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError"),
        ("OutOfMemoryError: CUDA out of memory.", "OutOfMemoryError"),
        ("KeyError: 'loss'", "KeyError"),
        ("KeyError: 3", "KeyError"),
        ("AssertionError", "AssertionError"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("SystemExit: 2", "SystemExit"),
        ("MisconfigurationException: No `train_dataloader`", "MisconfigurationException"),
        ("torch._dynamo.exc.Unsupported: call_function", "torch._dynamo.exc.Unsupported"),
        ("ERROR: RuntimeError: no", "RuntimeError"),
        ("RuntimeError:The size of tensor a (680) must match", "RuntimeError"),
        ("2024-01-01 10:00:00 ERROR ValueError: no", "ValueError"),
        ("[rank1]: ValueError: no", "ValueError"),
    ],
)  # fmt: skip
def test_bare_error(text: str, kind: str) -> None:
    assert one(f"Epoch 1\n{text}\nEpoch 2\n").type == kind


@pytest.mark.parametrize(
    "text",
    [
        "we caught a ValueError: fine",
        "2024-01-01 10:00:00 INFO we caught a ValueError: fine",
        "2024-01-01 10:00:00 WARNING ValueError: retrying",
        "WARNING:root:ValueError: retrying",
        "WARNING: RuntimeError: ignored",
        "/x/y.py:12: UserWarning: RuntimeError: soon\n  warnings.warn(",
        "UserWarning: this is slow",
        "DeprecationWarning: gone soon",
        "MeanSquaredError: 0.123",
        "ReconstructionError: nan",
        "MeanAbsoluteError",
        "(loss): MeanSquaredError()",
        "Error: see above",
        "error: command failed",
        "Error rate: 0.12",
        "ValueError, TypeError",
        "Raises:\n    ValueError: if the shape is wrong",
        "Epoch: 3",
        "Exit: now",
        "see the Traceback (most recent call last): line above",
        "Traceback (most recent call last):",
        "except RuntimeError:",
        "  | Name  | Type\n0 | loss | MeanSquaredError | 0",
        "3: RuntimeErrors seen",
        "All is killed. Aborted runs: 0",
        "killed",
        "    Killed",
        "TrainError:0.3",
        "std::RuntimeError::what",
        "Out of memory errors: 0",
        'File "x.py" was written, line 3',
        "",
    ],
)
def test_no_failure(text: str) -> None:
    assert parse(f"Epoch 1\n{text}\nEpoch 2: loss 0.1\n") == ()


# --- cut off --------------------------------------------------------------------------------------


def test_cut_at_the_start() -> None:
    text = PLAIN.split("\n", 4)[4]
    failure = one(text)
    assert (failure.type, len(failure.frames)) == ("RuntimeError", 1)


def test_cut_at_the_end() -> None:
    failure = one(PLAIN[: PLAIN.index("RuntimeError")])
    assert (failure.type, failure.message, len(failure.frames)) == ("", "", 2)
    assert failure.locator == "line 7"


def test_cut_at_both_ends() -> None:
    text = PLAIN[PLAIN.index("  File") : PLAIN.index("           ^")]
    assert len(one(text).frames) == 2


def test_cut_notebook_knows_its_type() -> None:
    assert one(IPYTHON_8[: IPYTHON_8.index("Cell In[2]")]).type == "RuntimeError"


def test_next_traceback_ends_a_cut_one() -> None:
    text = PLAIN[: PLAIN.index("RuntimeError")] + PLAIN
    assert [f.type for f in parse(text)] == ["", "RuntimeError"]


def test_chain_whose_first_half_is_lost() -> None:
    text = "\nDuring handling of the above exception, another exception occurred:\n\n" + PLAIN
    assert brief("RuntimeError: old\n" + "log\n" * 9 + text)[0] == ("RuntimeError", "old")
    assert len(parse(text)) == 1


def test_link_that_leads_nowhere() -> None:
    link = "During handling of the above exception, another exception occurred:\n"
    heading = "Traceback (most recent call last):\n"
    text = f"Exception ignored in: f\n{link}{heading * 6}KeyError  {heading[:-2]}\n"
    assert [f.type for f in parse(text)] == ["KeyError"]
    assert len(parse(f"KeyError: 1\n\n{link}" + "log\n" * 9 + "ValueError: 2\n")) == 2


# --- own frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        ("/home/me/train.py", True),
        ("train.py", True),
        ("/home/me/torch/train.py", True),
        ("/home/me/python/model.py", True),
        ("C:\\work\\train.py", True),
        ("<stdin>", True),
        ("<string>", True),
        ("<ipython-input-3-0c1f>", True),
        ("Cell In[3]", True),
        ("/tmp/ipykernel_17/123.py", True),
        ("/x/lib/python3.11/site-packages/torch/nn/modules/module.py", False),
        ("/usr/local/lib/python3.10/dist-packages/transformers/trainer.py", False),
        ("~/miniconda3/envs/x/lib/python3.10/site-packages/lightning/a.py", False),
        ("/usr/lib/python3.10/threading.py", False),
        ("C:\\Python311\\Lib\\threading.py", False),
        ("c:\\users\\me\\programs\\python\\python39\\lib\\runpy.py", False),
        ("C:\\Python39\\Scripts\\train.exe\\__main__.py", False),
        ("C:\\x\\venv\\Lib\\site-packages\\torch\\_ops.py", False),
        ("/opt/pytorch/torch/nn/modules/linear.py", False),
        ("torch/_ops.py", False),
        ("<frozen runpy>", False),
        ("<eval_with_key>.12", False),
        ("/usr/local/bin/torchrun", False),
        ("/tmp/torchinductor_me/ab/cab.py", False),
    ],
)
def test_own_frames(file: str, is_own: bool) -> None:
    failure = Failure("E", "", "a", frames=(Frame(file, 1, "f"),))
    assert bool(own_frames(failure)) is is_own


# --- properties -----------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["Traceback (most recent call last):", "Traceback (most recent call last)", '  File "x.py", line 3, in f',
     "    code()", "    ^^^^", "RuntimeError: x", "ValueError", "  indented", "\tkeys", "", "log", "Epoch 3",
     "During handling of the above exception, another exception occurred:", "  + Exception Group Traceback "
     "(most recent call last):", "  | ", "  +-+---- 1 ----", "    | ValueError: 1", "[rank0]: ", "0: ", "[0]:",
     "  rank : 1", "  exitcode : 1", "E   x", "x.py:3: RuntimeError", "-- Process 1 terminated with the "
     "following error:", "Original Traceback (most recent call last):", "Fatal Python error: x", "----> 3 x",
     "terminate called after throwing an instance of 'x'", "  what():  y", "Cell In[3], line 5", "a.cu:3: f: "
     "thread: [0] Assertion x failed", "Killed", "Exception ignored in: f", "Call stack:", "2024-01-01 10:00:00",
     "RuntimeError  Traceback (most recent call last)", "> ", "```", "\r", "\x1b[31m", "│ x.py:3 in f │", "╰──"]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=30).map("\n".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.integers(1, 1000))
def test_any_text_is_read(text: str, first_line: int) -> None:
    count = text.count("\n") + 1
    for failure in parse_failures(text, "a", first_line):
        found = re.fullmatch(r"line (\d+)", failure.locator)
        assert found is not None
        assert first_line <= int(found[1]) < first_line + count
        assert set(own_frames(failure)) <= set(failure.frames)
        assert len(failure.message) <= 20_000


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_characters_are_read(text: str) -> None:
    parse(text)


COMPLETE = [
    PLAIN, IPYTHON_7, IPYTHON_8, TORCHRUN, "KeyError: 'loss'\n", "Killed\n", "AssertionError\n",
    f"RuntimeError: {DEVICE_MESSAGE}\n", "nothing here\n", "[rank1]: ValueError: x\n",
    textwrap.indent(PLAIN, "[rank0]: ", lambda _: True), "Fatal Python error: Aborted\n",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(COMPLETE), st.sampled_from(COMPLETE))
def test_two_texts_have_the_failures_of_both(first: str, second: str) -> None:
    joined = parse(f"{first}\nnext job\n{second}")
    offset = first.count("\n") + 3
    expected = (*parse(first), *parse_failures(second, "run.log", offset))
    assert joined == expected


# --- cost -----------------------------------------------------------------------------------------

ADVERSARIAL = {
    "headings": "Traceback (most recent call last):\n",
    "frames": '  File "x.py", line 3, in f\n',
    "finals": "RuntimeError: x\n",
    "weak finals": 'Traceback (most recent call last):\n  File "x", line 1, in f\nEpoch: 1\nEpoch: 2\n',
    "blanks": "RuntimeError: x\n\n\n\n",
    "indented": "RuntimeError: x\n  y\n  z\n",
    "groups": "    | ValueError: 1\n    +---- 2 ----\n",
    "asserts": "a.cu:3: f: thread: [0] Assertion x failed\n",
    "entries": "[0]:\n  rank : 1\n  exitcode : 1\n",
    "pytest": "E   x\nx.py:3: in f\n",
    "chains": "RuntimeError: x\nDuring handling of the above exception, another exception occurred:\n",
    "fatal": "Fatal Python error: x\nCurrent thread 0x1 (most recent call first):\n",
    "ranks": "[rank0]: RuntimeError: x\n[rank1]: x\n",
    "noise": 'Traceback (most recent call last):\n  File "x", line 1, in f\n' + "a b\n" * 20,
}


def count_operations(text: str) -> int:
    """Return how many lines of Python and how many calls a text takes."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        parse(text)
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_cost_grows_with_the_text(name: str) -> None:
    text = ADVERSARIAL[name]
    once, twice = count_operations(text * 200), count_operations(text * 400)
    assert twice < 2.2 * once


LONG = {
    "spaces": " " * 20_000,
    "spaces then x": " " * 19_000 + "x",
    "dots": "a." * 10_000 + " Error",
    "name": "a" * 19_990 + "Error: x",
    "assertions": "a.cu:1: thread " + "Assertion " * 1_900,
    "quotes": 'File "' * 3_000,
    "colons": "File a" + ":1" * 9_000 + " Error",
    "frames": 'File "a", line 1, in ' * 900,
    "rich": "│ a" + ":1 in a " * 2_000 + "x Error",
    "brackets": "[" * 20_000 + "Error",
    "digits": "1" * 20_000 + " Error",
    "escapes": "\x1b[" * 9_000 + "Error",
    "colours": "[1;1;1" * 3_000 + "Error",
    "dashes": "-" * 19_000 + "> Error",
    "prompt": "a@" * 9_000 + "Error",
    "file in": "a.py" * 4_000 + " in Error",
    "bars": "%|" * 9_000 + "Error",
    "heading": "Traceback (most recent call last)" * 600 + "x",
}


@pytest.mark.parametrize("name", LONG)
def test_long_lines_end(name: str) -> None:
    # 2 MB: in quadratic time per line, minutes; the test's own time limit is not its point
    head = 'Traceback (most recent call last):\n  File "x", line 1, in f\nRuntimeError: x\n'
    parse("".join(f"{head}{LONG[name]}\n" for _ in range(100)))


def test_the_watchdog_speaks_without_a_traceback() -> None:
    work = "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds."
    text = (
        f"Epoch 0:  6%|█ | 32/500 [00:28<04:39, 1.37it/s][E ProcessGroupNCCL.cpp:458] [Rank 0] "
        f"Watchdog caught collective operation timeout: {work}\n"
        f"[rank3]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught "
        f"collective operation timeout: {work}\n"
    )
    assert [(f.type, f.rank) for f in parse(text)] == [
        ("DistBackendError", 0),
        ("DistBackendError", 3),
    ]


def test_what_the_loader_says_of_its_worker() -> None:
    failure = one(
        "DataLoader worker (pid 270) is killed by signal:\n"
        "Bus error. It is possible that dataloader's workers are out of shared memory.\n"
    )
    assert failure.type == "RuntimeError" and "shared memory" in failure.message
    text = (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
        "shared memory (shm).\n"
    )
    assert one(text).type == "WorkerDeath"
