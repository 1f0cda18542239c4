"""Checkpoints written by torch and safetensors themselves, whole, damaged and malicious."""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from traindx.model.merging import merge_runs
from traindx.model.run import Architecture, Run, Tensor
from traindx.readers.formats.checkpoint import (
    opcodes,
    safetensors_file,
    shards,
    storage,
    torch_file,
)
from traindx.readers.formats.checkpoint.danger import is_dangerous, judge
from traindx.registry import detectors, readers

LEGACY = {"_use_new_zipfile_serialization": False}
FORMATS = pytest.mark.parametrize("how", [{}, LEGACY], ids=["zip", "legacy"])


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


def training_state() -> dict[str, Any]:
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 1)
    net(torch.randn(4, 6)).sum().backward()
    optimizer.step()
    schedule.step()
    return {
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": schedule.state_dict(),
        "rng_state": torch.get_rng_state(),
        "epoch": 7,
        "global_step": 1200,
    }


def save(value: Any, path: Path, how: dict[str, Any] | None = None) -> Path:
    torch.save(value, path, **(how or {}))
    return path


def settings(run: Run) -> dict[str, Any]:
    return {s.key: s.value for s in run.config.settings}


def kinds(run: Run) -> set[str]:
    return {e.kind for e in run.events}


def tensors(run: Run) -> dict[str, Tensor]:
    assert run.architecture is not None
    return {t.name: t for t in run.architecture.tensors}


def findings(run: Run) -> set[str]:
    return {d.name for d in detectors().items if all(map(run.has, d.needs)) and list(d.check(run))}


@FORMATS
def test_a_training_checkpoint_is_read_whole(tmp_path: Path, how: dict[str, Any]) -> None:
    state = training_state()
    run = torch_file.read(save(state, tmp_path / "ckpt.pt", how))
    assert run.events == ()
    assert list(tensors(run)) == list(state["model"])
    for name, tensor in tensors(run).items():
        values = state["model"][name].double()
        assert tensor.shape == tuple(values.shape)
        assert f"torch.{tensor.dtype}" == str(state["model"][name].dtype)
        assert tensor.statistics["mean"] == pytest.approx(float(values.mean()), abs=1e-9)
        assert tensor.statistics["norm"] == pytest.approx(float(values.norm()))
        assert tensor.statistics["std"] == pytest.approx(float(values.std(correction=0)), abs=1e-9)
    assert run.architecture is not None
    assert (run.architecture.step, run.architecture.epoch) == (1200, 7)
    found = settings(run)
    assert found["checkpoint.has_optimizer"] is True
    assert found["checkpoint.has_scheduler"] is True
    assert found["checkpoint.has_scaler"] is False
    assert found["checkpoint.optimizer.lr"] == 3e-4
    assert found["checkpoint.optimizer.final_lr"] == 0.0
    assert found["checkpoint.optimizer.weight_decay"] == 0.1
    assert found["checkpoint.optimizer.parameters"] == 6
    assert findings(run) == set()


@FORMATS
def test_a_bare_state_dict_is_healthy(tmp_path: Path, how: dict[str, Any]) -> None:
    run = torch_file.read(save(model().state_dict(), tmp_path / "step_300.pt", how))
    assert settings(run) == {}
    assert run.architecture is not None
    assert run.architecture.step == 300
    assert run.checkpoints == (run.architecture,)
    assert findings(run) == set()


@FORMATS
def test_a_whole_module_is_described_though_torch_refuses_it(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    net = model()
    run = torch_file.read(save({"model": net, "epoch": 1}, tmp_path / "a.pt", how))
    assert list(tensors(run)) == list(net.state_dict())
    assert kinds(run) == {"unloadable-checkpoint"}
    assert "torch.nn.modules.linear.Linear" in run.events[0].text
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "a.pt", weights_only=True)


def test_lightning(tmp_path: Path) -> None:
    state = training_state()
    made = {
        "epoch": 3,
        "global_step": 400,
        "pytorch-lightning_version": "2.5.0",
        "state_dict": {f"model.{k}": v for k, v in state["model"].items()},
        "loops": {"fit_loop": {"state_dict": {}}},
        "callbacks": {},
        "optimizer_states": [state["optimizer"]],
        "lr_schedulers": [state["scheduler"]],
        "hyper_parameters": {"lr": 0.002, "nested": {"layers": 4}},
    }
    run = torch_file.read(save(made, tmp_path / "epoch=3-step=400.ckpt"))
    assert "model.0.weight" in tensors(run)
    found = settings(run)
    assert found["checkpoint.has_optimizer"] is True
    assert (found["hyper_parameters.lr"], found["hyper_parameters.nested.layers"]) == (0.002, 4)
    assert findings(run) == set()


class TrainingArguments:
    def __init__(self) -> None:
        self.learning_rate = 5e-5
        self.output_dir = "out"
        self._private = object


def test_training_arguments_are_settings(tmp_path: Path) -> None:
    run = torch_file.read(save(TrainingArguments(), tmp_path / "training_args.bin"))
    assert settings(run)["training_args.learning_rate"] == 5e-5
    assert run.architecture is None
    assert kinds(run) == {"unloadable-checkpoint"}


def test_the_files_of_a_trainer_make_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-500"
    folder.mkdir()
    state = training_state()
    save_file(state["model"], folder / "model.safetensors")
    save(state["optimizer"], folder / "optimizer.pt")
    save(state["scheduler"], folder / "scheduler.pt")
    parts = [torch_file.read(folder / n) for n in ("optimizer.pt", "scheduler.pt")]
    run = merge_runs([safetensors_file.read(folder / "model.safetensors"), *parts], "run")
    assert settings(run)["checkpoint.has_optimizer"] is True
    assert run.architecture is not None
    assert run.architecture.step == 500
    assert findings(run) == set()


def test_objects_are_named_and_their_values_told(tmp_path: Path) -> None:
    made = {
        "state_dict": model().state_dict(),
        "args": argparse.Namespace(lr=0.1, arch="resnet"),
        "epoch": np.int64(4),
        "best": np.float32(0.5),
    }
    run = torch_file.read(save(made, tmp_path / "a.pth"))
    assert settings(run)["args.lr"] == 0.1
    assert settings(run)["checkpoint.epoch"] == 4
    assert kinds(run) == {"unloadable-checkpoint"}
    assert "argparse.Namespace" in run.events[0].text
    assert findings(run) == {"checkpoint-without-optimizer-state"}


def test_weights_of_several_networks_keep_their_names(tmp_path: Path) -> None:
    weights = model().state_dict()
    run = torch_file.read(save({"netG": weights, "netD": weights, "optG": {}}, tmp_path / "gan.pt"))
    assert {"netG.0.weight", "netD.3.bias"} <= tensors(run).keys()
    averaged = torch_file.read(
        save({"ema": weights, "weights_raw": weights}, tmp_path / "averaged.pt")
    )
    assert list(tensors(averaged)) == list(weights)


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(3),
        (torch.zeros(3), torch.ones(2)),
        {"input_ids": torch.zeros(3), "labels": torch.ones(3)},
        [1, 2],
        None,
    ],
    ids=repr,
)
def test_tensors_that_are_data_are_no_model(tmp_path: Path, value: Any) -> None:
    run = torch_file.read(save(value, tmp_path / "data.pt"))
    assert run.architecture is None
    assert run.events == ()


DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.float8_e5m2, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@FORMATS
def test_every_type_of_number_is_read(tmp_path: Path, dtype: torch.dtype, how: Any) -> None:
    values = torch.tensor([[0.0, 1.0, 2.0], [1.0, 4.0, 0.5]]).to(dtype)
    if how and dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        pytest.skip("the old format has no such storage")
    tensor = tensors(torch_file.read(save({"a.weight": values}, tmp_path / "a.pt", how)))
    found = tensor["a.weight"].statistics
    assert found["mean"] == pytest.approx(float(values.double().mean()))
    assert found["max"] == float(values.double().max())
    save_file({"a.weight": values}, tmp_path / "a.safetensors")
    other = tensors(safetensors_file.read(tmp_path / "a.safetensors"))["a.weight"]
    assert other.dtype == tensor["a.weight"].dtype
    assert other.statistics == found


def test_all_eight_bit_floats_are_decoded() -> None:
    raw = torch.arange(256, dtype=torch.uint8)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        place = storage.StoredTensor("a", str(dtype).removeprefix("torch."), (256,), 0)
        ours = storage._numbers(bytes(range(256)), place).astype(np.float32)
        np.testing.assert_array_equal(ours, raw.view(dtype).float().numpy())


def test_views_are_read_where_they_stand(tmp_path: Path) -> None:
    base = torch.arange(24.0).view(4, 6)
    made = {"t.weight": base.t(), "row.weight": base[2], "cut.weight": base[:, 1:3]}
    found = tensors(torch_file.read(save(made, tmp_path / "a.pt")))
    assert found["t.weight"].shape == (6, 4)
    assert found["t.weight"].statistics["mean"] == 11.5
    assert found["row.weight"].statistics["mean"] == 14.5
    assert found["cut.weight"].statistics == {}  # its numbers are not in a row


def test_tied_weights_are_marked(tmp_path: Path) -> None:
    table = torch.randn(10, 4)
    run = torch_file.read(save({"wte.weight": table, "head.weight": table}, tmp_path / "a.pt"))
    assert "alias" not in tensors(run)["wte.weight"].statistics
    assert tensors(run)["head.weight"].statistics["alias"] == 1.0


def test_non_finite_weights_are_found(tmp_path: Path) -> None:
    weights = model().state_dict()
    weights["3.weight"][0, :2] = torch.tensor([float("nan"), float("inf")])
    run = torch_file.read(save(weights, tmp_path / "a.pt"))
    statistics = tensors(run)["3.weight"].statistics
    assert (statistics["nan"], statistics["inf"]) == (1.0, 1.0)
    assert findings(run) == {"nan-or-inf-weights"}


def test_a_large_tensor_is_sampled_alike_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BLOCK", 64)
    values = torch.randn(100, 100)
    file = io.BytesIO(values.numpy().tobytes())
    place = storage.StoredTensor("a", "float32", (100, 100), 0)
    found = storage.measure(file, place, 1000)
    assert found["sampled"] == 1.0
    assert found["count"] == 960
    assert found["norm"] == pytest.approx(float(values.norm()), rel=0.1)
    assert found == storage.measure(file, place, 1000)
    assert storage.sample_limit([10**9] * 1000) * 1000 <= storage.MAX_TOTAL


def test_equal_rows_are_noticed(tmp_path: Path) -> None:
    weights = model().state_dict()
    weights["0.weight"] = torch.full((5, 6), 0.25)
    run = torch_file.read(save(weights, tmp_path / "a.pt"))
    assert tensors(run)["0.weight"].statistics["equal_rows"] == 1.0
    assert tensors(run)["3.weight"].statistics["equal_rows"] == 0.0


# several files


def test_checkpoints_are_ordered_by_step(tmp_path: Path) -> None:
    runs = []
    for step in (20, 3, 100):
        net = model()
        nn.init.constant_(net[0].bias, step)
        runs.append(torch_file.read(save(net.state_dict(), tmp_path / f"step{step}.pt")))
    run = merge_runs(runs, "run")
    assert [c.step for c in run.checkpoints] == [3, 20, 100]
    assert run.architecture is run.checkpoints[-1]


def test_checkpoints_without_a_step_are_ordered_by_name() -> None:
    made = [Architecture((), f"fold/v{i}.pt") for i in (10, 9, 2)]
    run = merge_runs([Run(checkpoints=(m,), architecture=m) for m in made], "run")
    assert [c.artifact for c in run.checkpoints] == ["fold/v2.pt", "fold/v9.pt", "fold/v10.pt"]


def test_an_unmoved_head_is_found_between_two_checkpoints(tmp_path: Path) -> None:
    net = nn.Sequential()
    net.add_module("body", nn.Linear(8, 8))
    net.add_module("head", nn.Linear(8, 4))
    optimizer = torch.optim.SGD(net.body.parameters(), lr=0.1)
    runs = []
    for step in (1, 2):
        optimizer.zero_grad()
        net(torch.randn(4, 8)).square().sum().backward()
        optimizer.step()
        runs.append(torch_file.read(save(net.state_dict(), tmp_path / f"step{step}.pt")))
    assert findings(merge_runs(runs, "run")) == {"weights-unchanged-between-checkpoints"}


def sharded(folder: Path, suffix: str) -> Path:
    weights = model().state_dict()
    names = list(weights)
    stem = "model" if suffix == "safetensors" else "pytorch_model"
    table = {}
    for i, part in enumerate((names[:3], names[3:]), 1):
        name = f"{stem}-{i:05d}-of-00002.{suffix}"
        made = {n: weights[n] for n in part}
        if suffix == "safetensors":
            save_file(made, folder / name)
        else:
            save(made, folder / name)
        table |= dict.fromkeys(part, name)
    index = folder / f"{stem}.{suffix}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": table}))
    return index


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_shards_are_one_checkpoint(tmp_path: Path, suffix: str) -> None:
    index = sharded(tmp_path, suffix)
    assert shards.sniff(index, index.read_bytes()) == 0.99
    run = shards.read(index)
    assert tensors(run).keys() == model().state_dict().keys()
    assert run.events == ()
    each = [(safetensors_file if suffix == "safetensors" else torch_file).read(p)
            for p in tmp_path.glob(f"*-of-*.{suffix}")]  # fmt: skip
    merged = merge_runs([*each, run], "run")
    assert len(merged.checkpoints) == 1
    assert tensors(merged).keys() == model().state_dict().keys()
    assert merged.architecture is not None
    assert merged.architecture.artifact == str(index)


def test_missing_shards_are_damage(tmp_path: Path) -> None:
    index = sharded(tmp_path, "safetensors")
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    run = shards.read(index)
    assert kinds(run) == {"corrupt-checkpoint"}
    assert "model-00002-of-00002" in run.events[0].text
    assert "0.weight" in tensors(run)
    assert findings(run) == {"corrupted-checkpoint-file"}
    index.write_text('{"weight_map": {"a": "../../etc/passwd", "b": "/etc/passwd"}}')
    assert {e.text for e in shards.read(index).events} == {
        "the shard ../../etc/passwd is missing",
        "the shard /etc/passwd is missing",
    }
    index.write_text('{"weight_map": {"a"')
    assert kinds(shards.read(index)) == {"corrupt-checkpoint"}


# damage


def whole_files(folder: Path) -> dict[str, tuple[bytes, Callable[[Path], Run]]]:
    state = training_state()
    save(state, folder / "zip.pt")
    save(state, folder / "legacy.pt", LEGACY)
    save_file(state["model"], folder / "plain.safetensors")
    return {
        "zip": ((folder / "zip.pt").read_bytes(), torch_file.read),
        "legacy": ((folder / "legacy.pt").read_bytes(), torch_file.read),
        "safetensors": ((folder / "plain.safetensors").read_bytes(), safetensors_file.read),
    }


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_a_file_cut_anywhere_is_damaged_and_never_an_error(tmp_path: Path, kind: str) -> None:
    data, read = whole_files(tmp_path)[kind]
    path = tmp_path / "cut.pt"
    told = 0
    for length in sorted({*range(0, len(data), max(1, len(data) // 300)), *range(40)}):
        path.write_bytes(data[:length])
        run = read(path)
        assert "corrupt-checkpoint" in kinds(run), length
        assert "unsafe-checkpoint" not in kinds(run), length
        assert findings(run) >= {"corrupted-checkpoint-file"}
        told += run.architecture is not None
        assert "checkpoint-without-optimizer-state" not in findings(run)
    assert told > 30  # what stands before the cut is still told


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_mutated_files_never_crash(tmp_path: Path, kind: str) -> None:
    data, read = whole_files(tmp_path)[kind]
    path = tmp_path / "mutated.pt"
    rng = random.Random(0)
    tracemalloc.start()
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 3, 20])):
            at = rng.randrange(len(changed) if rng.random() < 0.3 else min(4000, len(changed)))
            changed[at] = rng.choice([0, 255, 0x80, rng.randrange(256)])
        path.write_bytes(bytes(changed))
        run = read(path)
        findings(run)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\0" * 9000, "zeros"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 10\n", "git-lfs"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"\x13\x37" * 50, "begins like no checkpoint"),
    ],
)
def test_something_else_in_the_place_of_a_checkpoint(
    tmp_path: Path, data: bytes, word: str
) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(data)
    assert torch_file.sniff(path, data) >= 0.6
    run = torch_file.read(path)
    assert word in run.events[0].text
    assert findings(run) == {"corrupted-checkpoint-file"}


def test_a_missing_storage_is_damage(tmp_path: Path) -> None:
    path = save({"a.weight": torch.ones(8, 8), "b.weight": torch.ones(4)}, tmp_path / "a.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "b.pt", "w") as new:
        for name in old.namelist():
            if not name.endswith("data/1"):
                content = old.read(name)
                new.writestr(name, content[:100] if name.endswith("data/0") else content)
    run = torch_file.read(tmp_path / "b.pt")
    texts = " ".join(e.text for e in run.events)
    assert "1 storages are missing" in texts
    assert tensors(run)["a.weight"].statistics == {}


@pytest.mark.parametrize("length", [1 << 62, 200 << 20, (1 << 64) - 1])
def test_a_header_of_impossible_length(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", length) + b'{"a":' * 10)
    run = safetensors_file.read(path)
    assert "more than the format allows" in run.events[0].text


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [-1, 2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]},
        {"dtype": 3, "shape": [2], "data_offsets": [0, 8]},
        [],
        None,
    ],
    ids=repr,
)
def test_entries_that_make_no_sense(tmp_path: Path, entry: Any) -> None:
    good = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    header = json.dumps({"bad": entry, "good.weight": good}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    run = safetensors_file.read(path)
    assert list(tensors(run)) == ["good.weight"]
    assert kinds(run) == {"corrupt-checkpoint"}


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx.readers.formats.checkpoint.archive.MAX_PICKLE", 1 << 20)
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"N0" * (64 << 19))
    tracemalloc.start()
    run = torch_file.read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert run.architecture is None


def test_a_directory_that_lies_about_its_size(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 65535, 65535, 1 << 31, 0, 0)
    path.write_bytes(b"PK\x03\x04" + bytes(100) + end)
    assert kinds(torch_file.read(path)) == {"corrupt-checkpoint"}


def test_many_references_to_one_object_end(tmp_path: Path) -> None:
    value: Any = {"a.weight": torch.ones(2)}
    for _ in range(60):
        value = {"x": value, "y": value}
    deep: Any = ()
    for _ in range(900):
        deep = (deep, deep)
    run = torch_file.read(save({"model": value, "deep": deep, "epoch": 1}, tmp_path / "a.pt"))
    assert kinds(run) == set()
    laughs = b"\x80\x02}(" + b"N\x85" + b"2\x86" * 200_000 + b"K\x01u."
    assert opcodes.follow(laughs).value == {"<tuple>": 1}


# code


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


class Evaluated:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return eval, (f"open({str(self.marker)!r}, 'w').close()",)


@pytest.mark.parametrize("kind", [Payload, Evaluated])
@FORMATS
def test_a_payload_is_refused_and_not_run(tmp_path: Path, kind: Any, how: dict[str, Any]) -> None:
    marker = tmp_path / "ran"
    made = {"model": model().state_dict(), "extra": kind(marker)}
    path = save(made, tmp_path / "evil.pt", how)
    run = torch_file.read(path)
    assert not marker.exists()
    assert kinds(run) == {"unsafe-checkpoint"}
    assert findings(run) == {"unsafe-pickle"}
    torch.load(path, weights_only=False)  # the payload is a real one
    assert marker.exists()


def test_a_payload_in_a_plain_or_damaged_pickle_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = tmp_path / "evil.bin"
    path.write_bytes(pickle.dumps({"a": Payload(marker)}))
    assert kinds(torch_file.read(path)) == {"unsafe-checkpoint"}
    save({"extra": Payload(marker), "model": model().state_dict()}, tmp_path / "evil.pt")
    path.write_bytes((tmp_path / "evil.pt").read_bytes()[:2000])
    assert kinds(torch_file.read(path)) == {"unsafe-checkpoint", "corrupt-checkpoint"}
    assert not marker.exists()


def test_a_payload_inside_a_pickled_tensor_is_seen(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    inner = io.BytesIO()
    torch.save(Payload(marker), inner, **LEGACY)

    class Nested:
        def __reduce__(self) -> Any:
            return torch.storage._load_from_bytes, (inner.getvalue(),)

    path = tmp_path / "a.pt"
    path.write_bytes(pickle.dumps(Nested()))
    assert kinds(torch_file.read(path)) == {"unsafe-checkpoint"}
    path.write_bytes(pickle.dumps(model().state_dict()))
    assert kinds(torch_file.read(path)) == {"unloadable-checkpoint"}
    assert not marker.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x04\x8c\x13torch.serialization\x8c\x09os.system\x93\x8c\x02id\x85R.",
        b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93\x8c\x05torch\x8c\x02os\x93\x8c\x06system\x86R.",
        b"\x80\x04NN\x93)R.",
        b"(S'id'\nios\nsystem\n.",
        b"cos\nsystem\n(S'id'\ntR.",
    ],
)
def test_hidden_names_are_dangerous(program: bytes) -> None:
    assert judge(opcodes.follow(program).globals).dangerous


@pytest.mark.parametrize(
    "name",
    [
        "argparse.Namespace", "numpy.core.multiarray.scalar", "numpy.dtype",
        "types.SimpleNamespace", "omegaconf.dictconfig.DictConfig", "pathlib.PosixPath",
        "torch.nn.modules.linear.Linear",
        "ultralytics.nn.tasks.DetectionModel", "collections.defaultdict", "copyreg._reconstructor",
        "builtins.object", "builtins.getattr", "transformers.training_args.TrainingArguments",
        "my_project.system.Trainer", "my_project.sys.Config", "functools.partial", "enum.Enum",
        "torch.storage._load_from_bytes", "(object).forward", "datetime.datetime",
    ],
)  # fmt: skip
def test_ordinary_objects_are_not_dangerous(name: str) -> None:
    assert not is_dangerous(name)


def test_what_torch_admits_is_admitted() -> None:
    from torch._weights_only_unpickler import _get_allowed_globals

    assert judge(_get_allowed_globals()) == judge(())


# recognition


def test_each_file_goes_to_its_reader(tmp_path: Path) -> None:
    index = sharded(tmp_path, "safetensors")
    save(training_state(), tmp_path / "zip.pt")
    save(training_state(), tmp_path / "no_suffix", LEGACY)
    expected = {
        "zip.pt": "checkpoint",
        "no_suffix": "checkpoint",
        index.name: "sharded checkpoint",
        "model-00001-of-00002.safetensors": "safetensors",
    }
    for name, reader in expected.items():
        head = (tmp_path / name).read_bytes()[: 1 << 16]
        best = max(readers().items, key=lambda r: r.sniff(tmp_path / name, head))
        assert best.name == reader


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("notes.pth", b"/usr/lib/python3/site-packages\n"),
        ("data.npz", b"PK\x03\x04" + bytes(26) + b"arr_0.npy"),
        ("model.ckpt", b"\x13\x37" * 50),
        ("firmware.bin", b"\x13\x37" * 50),
        ("values.pkl", pickle.dumps([1])),
        ("a.json", b'{"a": 1}'),
    ],
)
def test_other_files_are_left_alone(name: str, head: bytes) -> None:
    for module in (torch_file, safetensors_file, shards):
        assert module.sniff(Path(name), head) == 0.0


def test_compressed_archives_are_described(tmp_path: Path) -> None:
    path = save(model().state_dict(), tmp_path / "a.pt")
    packed = zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as old, packed as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    run = torch_file.read(tmp_path / "b.pt")
    assert run.events == ()
    assert tensors(run)["0.weight"].shape == (5, 6)
