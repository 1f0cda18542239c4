"""Batches are kept so that the real safetensors library reads them back."""

from __future__ import annotations

import json
from collections import UserDict, namedtuple
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
safe = pytest.importorskip("safetensors.torch")

from traindx.capture.recorder.incident_files import keep  # noqa: E402


@dataclass
class Graphs:
    edges: object
    label: str


Pair = namedtuple("Pair", "left right")


def kept(tmp_path, batch, **options):
    options = {"rng_state": torch.get_rng_state(), "extra": {"step": 3}, **options}
    relative = keep(str(tmp_path), "nan-0", batch=batch, **options)
    assert relative == "incidents/nan-0"
    folder = tmp_path / relative
    tensors = safe.load_file(folder / "batch.safetensors")
    return tensors, json.loads((folder / "incident.json").read_text()), folder


def test_nested_batch_reads_back(tmp_path):
    batch = (
        torch.randn(4, 3).t(),
        {"input_ids": torch.arange(6).view(2, 3), "text": "hello", "n": 3, "w": 0.5, "none": None},
        [torch.tensor(7), torch.empty(0, 5)],
        UserDict(mask=torch.tensor([True, False])),
        Graphs(torch.ones(2, 2), "a"),
        Pair(torch.ones(1), torch.zeros(1)),
        object(),
    )
    tensors, told, folder = kept(tmp_path, batch)
    assert torch.equal(tensors["0"], batch[0])
    assert torch.equal(tensors["1.input_ids"], batch[1]["input_ids"])
    assert tensors["2.0"].shape == () and tensors["2.0"] == 7
    assert tensors["2.1"].shape == (0, 5)
    assert torch.equal(tensors["3.mask"], batch[3]["mask"])
    assert set(tensors) == {"0", "1.input_ids", "2.0", "2.1", "3.mask", "4.edges", "5.0", "5.1"}
    assert told["values"] == {
        "1.text": "hello",
        "1.n": 3,
        "1.w": 0.5,
        "1.none": None,
        "4.label": "a",
    }
    assert told["batch"]["items"][0] == {"tensor": "0"}
    assert told["batch"]["items"][1]["entries"]["n"] == {"value": "1.n"}
    assert told["extra"] == {"step": 3}
    assert told["notes"] == ["6: left out, a object"]
    random = safe.load_file(folder / "rng.safetensors")
    assert torch.equal(random["cpu"], torch.get_rng_state())
    assert sorted(p.name for p in folder.iterdir()) == [
        "batch.safetensors",
        "incident.json",
        "rng.safetensors",
    ]


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64,
    ],
)  # fmt: skip
def test_types(tmp_path, dtype):
    value = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    tensors, _, _ = kept(tmp_path, value)
    assert tensors["tensor"].dtype == dtype
    assert torch.equal(tensors["tensor"].to(torch.complex64), value.to(torch.complex64))


def test_large_batch_is_cut_to_rows(tmp_path):
    batch = {"x": torch.randn(100, 1000), "y": torch.arange(100), "scale": torch.ones(3)}
    tensors, told, folder = kept(tmp_path, batch, max_bytes=50_000)
    assert told["rows_kept"] == 12
    assert torch.equal(tensors["x"], batch["x"][:12])
    assert torch.equal(tensors["y"], torch.arange(12))
    assert tensors["scale"].shape == (3,)
    assert "first 12 rows" in told["notes"][0]
    assert (folder / "batch.safetensors").stat().st_size < 60_000


def test_views_and_gradients(tmp_path):
    value = torch.randn(5, 6, requires_grad=True)
    batch = [value[:, ::2], value * 2, torch.view_as_complex(torch.randn(3, 2)).conj()]
    tensors, _, _ = kept(tmp_path, batch)
    assert all(torch.equal(tensors[str(i)], batch[i].detach()) for i in range(3))


def test_what_cannot_be_kept_is_said(tmp_path):
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    batch = [torch.eye(3).to_sparse(), torch.empty(2, device="meta"), freed, torch.ones(1)]
    tensors, told, _ = kept(tmp_path, batch)
    assert set(tensors) == {"3"}
    assert len(told["notes"]) == 3


def test_never_raises(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert keep(str(file), "x", batch=[1], rng_state=None, extra={}) == ""
    cycle = []
    cycle.append(cycle)
    assert keep(str(tmp_path), "cycle", batch=cycle, rng_state=None, extra={"bad": {1, object()}})
    assert Path(tmp_path, "incidents", "cycle", "incident.json").exists()


def test_nothing_random_is_drawn(tmp_path):
    before = torch.get_rng_state()
    kept(tmp_path, torch.ones(10, 10), max_bytes=100)
    assert torch.equal(before, torch.get_rng_state())
