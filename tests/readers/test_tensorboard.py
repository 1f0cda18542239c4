"""The TensorBoard reader on files that the real writers wrote (torch 2.13, tensorboard 2.21,
tensorboardX 2.6), whole and damaged."""

from __future__ import annotations

import json
import math
import struct
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.summary.writer.record_writer import RecordWriter

from traindx.errors import UnreadableArtifact
from traindx.model.run import Run
from traindx.readers.formats.tensorboard import reader as module
from traindx.readers.formats.tensorboard import tag_tracks
from traindx.readers.formats.tensorboard.checksum import masked, masked_each
from traindx.readers.formats.tensorboard.reader import layer_name, read, sniff
from traindx.readers.formats.tensorboard.tfrecords import MAX_RECORD, TFRecords
from traindx.registry import readers


def scalar(tag: str, value: float, step: int) -> Event:
    told = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    return Event(wall_time=1.7e9 + step, step=step, summary=told)


def tensor_scalar(tag: str, value: float, step: int, form: str, plugin: str = "") -> Event:
    makers: dict[str, Callable[[], Any]] = {
        "float_val": lambda: TensorProto(
            dtype=1, float_val=[value], tensor_shape=TensorShapeProto()
        ),
        "double_val": lambda: TensorProto(dtype=2, double_val=[value]),
        "content": lambda: TensorProto(dtype=1, tensor_content=struct.pack("<f", value)),
        "content64": lambda: TensorProto(dtype=2, tensor_content=struct.pack("<d", value)),
        "int64": lambda: TensorProto(dtype=9, int64_val=[int(value)]),
        "half": lambda: TensorProto(dtype=19, half_val=[int(np.float16(value).view(np.uint16))]),
    }
    tensor = makers[form]()
    of = Summary.Value(tag=tag, tensor=tensor)
    if plugin:
        of.metadata.CopyFrom(
            SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
        )
    return Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=[of]))


def write(path: Path, events: Iterable[Event], version: str = "brain.Event:2") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=1.7e9, file_version=version).SerializeToString())
        for event in events:
            writer.write(event.SerializeToString())
    return path


def frame(payload: bytes, length: int | None = None) -> bytes:
    header = struct.pack("<Q", len(payload) if length is None else length)
    body = payload + struct.pack("<I", masked(payload))
    return header + struct.pack("<I", masked(header)) + body


def only_file(folder: Path) -> Path:
    (path,) = (p for p in folder.rglob("*tfevents*"))
    return path


def torch_writer(folder: Path) -> Any:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    return tensorboard.SummaryWriter(str(folder))


def points(run: Run, name: str) -> list[tuple[float, float]]:
    series = run.series[name]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def read_slowly(path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    with monkeypatch.context() as patch:
        patch.setattr(module, "gather", lambda block, *_: np.arange(len(block.starts)))
        return read(path)


def same(a: Run, b: Run) -> bool:
    return list(a.series) == list(b.series) and all(
        np.array_equal(s.values, b.series[n].values, equal_nan=True)
        and np.array_equal(s.steps, b.series[n].steps)
        and np.array_equal(s.places, b.series[n].places)
        for n, s in a.series.items()
    )


# what the writers write


def test_scalars_of_torch(tmp_path: Path) -> None:
    with torch_writer(tmp_path) as writer:
        for step in range(300):
            writer.add_scalar("Loss/train", 1.0 / (step + 1), step)
            writer.add_scalar("Loss/val", 2.0, step, new_style=True)
    path = only_file(tmp_path)
    run = read(path)
    assert points(run, "loss/train")[2] == (2.0, float(np.float32(1 / 3)))
    assert points(run, "loss/val") == [(float(i), 2.0) for i in range(300)]
    assert run.artifacts[0].reader == "tensorboard"
    assert run.artifacts[0].warnings == ()
    series = run.series["loss/train"]
    assert (series.origin.name, series.origin.unit) == ("Loss/train", "record")
    assert [series.where(0), series.where(2)] == ["record 2", "record 6"]
    assert sniff(path, path.read_bytes()[:4096]) > 0.9


def test_each_curve_of_add_scalars_has_a_file(tmp_path: Path) -> None:
    with torch_writer(tmp_path) as writer:
        for step in range(5):
            writer.add_scalars("loss", {"train": 1.0, "val": 2.0, "gen": 3.0}, step)
    names = {
        p.parent.name: list(read(p).series)
        for p in tmp_path.rglob("*tfevents*")
        if p.parent != tmp_path
    }
    assert names == {
        "loss_train": ["loss/train"],
        "loss_val": ["loss/val"],
        "loss_gen": ["loss/train/gen"],
    }


def test_tensorboardx(tmp_path: Path) -> None:
    tensorboardx = pytest.importorskip("tensorboardX")
    writer = tensorboardx.SummaryWriter(str(tmp_path))
    for step in range(20):
        writer.add_scalar("train/loss", float(step), step)
        writer.add_histogram("fc.weight", np.array([3.0, 4.0]), step)
    writer.close()
    run = read(only_file(tmp_path))
    assert points(run, "loss/train") == [(float(i), float(i)) for i in range(20)]
    assert run.series["layers/fc.weight/weight_norm"].values == pytest.approx(5.0)


def test_histograms_of_torch_become_norms(tmp_path: Path) -> None:
    gradient = np.random.default_rng(0).normal(size=1000)
    with torch_writer(tmp_path) as writer:
        for step in range(3):
            writer.add_histogram("gradients/fc.weight", gradient * 10.0**-step, step)
            writer.add_histogram("fc.weight", gradient, step)
            writer.add_histogram("activations/relu", gradient, step)
    run = read(only_file(tmp_path))
    norms = run.series["layers/fc.weight/grad_norm"].values
    assert norms == pytest.approx(np.linalg.norm(gradient) * np.array([1.0, 0.1, 0.01]))
    assert list(run.series) == ["layers/fc.weight/grad_norm", "layers/fc.weight/weight_norm"]


def test_text_and_hparams_become_settings(tmp_path: Path) -> None:
    arguments = {"learning_rate": 5e-05, "fp16": False, "nested": {"optim": "adamw"}}
    with torch_writer(tmp_path) as writer:
        writer.add_text("args", json.dumps(arguments, indent=2))
        writer.add_text("model_config", json.dumps({"d_model": 512}))
        writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|gamma|0.99|\n|env_id|Hopper|")
        writer.add_text("samples", "lr: a word that a model wrote")
        writer.add_text("config", "Namespace(seed=3, name='a')")
        writer.add_hparams({"batch_size": 32, "opt": "sgd", "amp": True}, {"best": 0.5})
    found = {s.key: s.value for p in tmp_path.rglob("*tfevents*") for s in read(p).config.settings}
    assert found == {
        "learning_rate": 5e-05, "fp16": False, "nested.optim": "adamw", "model_config.d_model": 512,
        "gamma": 0.99, "env_id": "Hopper", "seed": 3, "name": "a", "batch_size": 32, "opt": "sgd",
        "amp": True,
    }  # fmt: skip


def test_a_setting_says_its_record(tmp_path: Path) -> None:
    with torch_writer(tmp_path) as writer:
        writer.add_text("args", '{"lr": 0.1}')
    (setting,) = read(only_file(tmp_path)).config.settings
    assert setting.locator == "args, record 2"


@pytest.mark.parametrize("form", ["float_val", "double_val", "content", "content64"])
def test_scalars_as_tensors(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        tensor_scalar("loss", i / 8, i, form, "scalars" if i == 0 else "") for i in range(400)
    ]
    path = write(tmp_path / "events", events)
    run = read(path)
    assert points(run, "loss/train") == [(float(i), i / 8) for i in range(400)]
    assert same(run, read_slowly(path, monkeypatch))


def test_metadata_behind_the_tensor(tmp_path: Path) -> None:
    events = [tensor_scalar("loss", float(i), i, "content", "scalars") for i in range(400)]
    run = read(write(tmp_path / "events", events))
    assert points(run, "loss/train") == [(float(i), float(i)) for i in range(400)]


def test_integers_and_halves(tmp_path: Path) -> None:
    events = [tensor_scalar("loss", 3.0, 1, "int64"), tensor_scalar("lr", 0.5, 1, "half")]
    run = read(write(tmp_path / "events", events))
    assert points(run, "loss/train") == [(1.0, 3.0)]
    assert points(run, "lr") == [(1.0, 0.5)]


def test_a_tag_of_another_plugin_is_no_scalar(tmp_path: Path) -> None:
    events = [tensor_scalar("loss", 1.0, i, "content", "mine" if i == 0 else "") for i in range(9)]
    assert not read(write(tmp_path / "events", events)).series


@pytest.mark.parametrize(
    ("folder", "name"),
    [("train", "loss/train"), ("validation", "loss/val"), ("exp1", "loss/train")],
)
def test_keras_folders_give_the_phase(tmp_path: Path, folder: str, name: str) -> None:
    events = [tensor_scalar("epoch_loss", 1.0 - i / 10, i, "content", "scalars") for i in range(5)]
    run = read(write(tmp_path / folder / "events.out.tfevents.1.host.v2", events))
    assert list(run.series) == [name]
    assert run.series[name].axis == "epoch"


def test_the_tag_wins_over_the_folder(tmp_path: Path) -> None:
    run = read(write(tmp_path / "train" / "events", [scalar("val_loss", 1.0, 0)]))
    assert list(run.series) == ["loss/val"]


def test_a_tag_that_counts_epochs_is_a_coordinate(tmp_path: Path) -> None:
    events = [e for i in range(10) for e in (scalar("loss", 1.0, i), scalar("epoch", i // 5, i))]
    run = read(write(tmp_path / "events", events))
    assert list(run.series) == ["loss/train"]
    assert run.series["loss/train"].epochs.tolist() == [0.0] * 5 + [1.0] * 5


def test_histograms_as_tensors(tmp_path: Path) -> None:
    buckets = np.array([[-1.0, 0.0, 10.0], [0.0, 1.0, 20.0]])
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=2), TensorShapeProto.Dim(size=3)])
    tensor = TensorProto(dtype=2, tensor_shape=shape, tensor_content=buckets.tobytes())
    told = Summary(value=[Summary.Value(tag="dense/kernel_0/histogram", tensor=tensor)])
    run = read(write(tmp_path / "events", [Event(step=3, summary=told)]))
    assert points(run, "layers/dense/kernel_0/weight_norm") == [(3.0, pytest.approx(10**0.5))]


@pytest.mark.parametrize(
    ("histogram", "norm"),
    [
        (HistogramProto(min=math.nan, max=math.nan, num=4, sum_squares=math.nan), math.nan),
        (HistogramProto(min=0.0, max=math.inf, num=4, sum_squares=math.inf), math.inf),
        (HistogramProto(num=4), 0.0),
        # the squares were lost to single precision; the buckets know
        (HistogramProto(min=1e-30, max=1e-30, num=4, bucket_limit=[1e-30], bucket=[4]), 2e-30),
    ],
)
def test_norms_that_are_not_sums_of_squares(
    tmp_path: Path, histogram: HistogramProto, norm: float
) -> None:
    told = Summary(value=[Summary.Value(tag="fc.weight.grad", histo=histogram)])
    run = read(write(tmp_path / "events", [Event(step=1, summary=told)]))
    assert run.series["layers/fc.weight/grad_norm"].values == pytest.approx([norm], nan_ok=True)


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("gradients/layer1.0.conv.weight", "layers/layer1.0.conv.weight/grad_norm"),
        ("fc1.weight.grad", "layers/fc1.weight/grad_norm"),
        ("fc1/weight_grad", "layers/fc1/weight/grad_norm"),
        ("grad_fc1", "layers/fc1/grad_norm"),
        ("weights/fc1", "layers/fc1/weight_norm"),
        ("encoder.bias", "layers/encoder.bias/weight_norm"),
        ("lstm.weight_ih_l0", "layers/lstm.weight_ih_l0/weight_norm"),
        ("gradients/total", None),
        ("activations/relu1", None),
        ("predictions", None),
    ],
)
def test_names_of_histograms(tag: str, name: str | None) -> None:
    assert layer_name(tag) == name


def test_several_values_in_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def event(step: int) -> Event:
        tags = [("loss", 1.0 * step), ("accuracy", 2.0 * step), ("lr", 0.1)]
        values = [Summary.Value(tag=t, simple_value=v) for t, v in tags]
        return Event(wall_time=1.0, step=step, summary=Summary(value=values))

    path = write(tmp_path / "events", map(event, range(200)))
    run = read(path)
    assert points(run, "accuracy/train") == [(float(i), 2.0 * i) for i in range(200)]
    assert same(run, read_slowly(path, monkeypatch))


# fast and slow agree


def test_fast_and_slow_agree_on_a_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    events: list[Event] = []
    tags = ["loss", "acc", "lr", "a/loss", "b/loss", *(f"loss/part{i:02}" for i in range(40))]
    for i in range(3000):
        tag = tags[random.integers(len(tags))]
        step = int(random.choice([0, i, 127, 128, 1 << 20, 1 << 40, (1 << 62) + i, -i]))
        value = float(random.choice([random.normal(), math.nan, math.inf, -math.inf, 0.0]))
        form = str(random.choice(["float_val", "double_val", "content", "content64", "plain"]))
        made = (
            scalar(tag, value, step) if form == "plain" else tensor_scalar(tag, value, step, form)
        )
        if random.random() < 0.05:
            made.ClearField("wall_time")
        events.append(made)
    path = write(tmp_path / "events", events)
    fast, slow = read(path), read_slowly(path, monkeypatch)
    assert same(fast, slow)
    assert not fast.artifacts[0].warnings


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.text(min_size=0, max_size=6),
            st.floats(width=32),
            st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 300),
        ),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 8),
)
def test_fast_and_slow_agree_on_anything(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: list[tuple[str, float, int]],
    repeats: int,
) -> None:
    path = write(tmp_path / "events", [scalar(*t) for t in told for _ in range(repeats)])
    assert same(read(path), read_slowly(path, monkeypatch))


def test_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "events", [scalar("loss", float(i), i) for i in range(500)])
    whole = read(path)
    monkeypatch.setattr("traindx.readers.formats.tensorboard.tfrecords.BLOCK", 97)
    assert same(read(path), whole)


def test_non_finite_values_stay(tmp_path: Path) -> None:
    values = [1.0, math.nan, math.inf, -math.inf, 0.5] * 4
    run = read(write(tmp_path / "events", [scalar("loss", v, i) for i, v in enumerate(values)]))
    assert np.array_equal(run.series["loss/train"].values, values, equal_nan=True)


def test_a_resumed_run_stays_in_the_order_of_the_file(tmp_path: Path) -> None:
    steps = [*range(100), *range(60, 150)]
    run = read(
        write(tmp_path / "events", [scalar("loss", float(i), s) for i, s in enumerate(steps)])
    )
    series = run.series["loss/train"]
    assert series.steps.tolist() == [float(s) for s in steps]
    assert series.restarts() == [100]
    assert series.timeline().steps.tolist() == [float(s) for s in range(150)]


def test_two_files_of_a_folder_are_two_artifacts(tmp_path: Path) -> None:
    first = write(tmp_path / "events.1", [scalar("loss", 1.0, i) for i in range(10)])
    second = write(tmp_path / "events.2", [scalar("loss", 1.0, i) for i in range(5, 15)])
    assert [len(read(p).series["loss/train"]) for p in (first, second)] == [10, 10]


# damage


def small_file(path: Path) -> Path:
    events = [e for i in range(6) for e in (scalar("loss", 1.0, i), scalar("acc", 0.5, i))]
    events.append(tensor_scalar("val/loss", 1.0, 6, "content", "scalars"))
    histogram = HistogramProto(min=-1, max=1, num=2, sum_squares=2, bucket_limit=[1], bucket=[2])
    value = Summary.Value(tag="fc.weight", histo=histogram)
    events.append(Event(step=7, summary=Summary(value=[value])))
    return write(path, events)


def test_every_truncation_keeps_what_is_whole(tmp_path: Path) -> None:
    data = small_file(tmp_path / "events").read_bytes()
    cut = tmp_path / "cut"
    last = 0
    for size in range(len(data)):
        cut.write_bytes(data[:size])
        try:
            run = read(cut)
        except UnreadableArtifact:
            assert last == 0
            continue
        count = sum(len(s) for s in run.series.values())
        assert count >= last
        last = count
    assert last == 13
    assert "ends within record 15" in run.artifacts[0].warnings[0]
    assert [e.kind for e in run.events] == ["warning"]


def test_a_corrupt_record_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "events", [scalar("loss", 1.0, i) for i in range(100)])
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack("<d", 1.7e9 + 50))
    data[at + 18] ^= 0x40  # a bit of the tag or the value, not of the framing
    path.write_bytes(data)
    run = read(path)
    assert len(run.series["loss/train"]) == 99
    assert 50.0 not in run.series["loss/train"].steps
    assert run.artifacts[0].warnings == ("record 52 is corrupt (wrong checksum) and left out",)


def test_a_damaged_length_ends_the_reading(tmp_path: Path) -> None:
    events = [scalar("loss", 1.0, i) for i in range(100)]
    path = write(tmp_path / "events", events)
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack("<d", 1.7e9 + 50))
    data[at - 13] ^= 1  # the length stands 12 bytes before the payload, which begins with a key
    path.write_bytes(data)
    run = read(path)
    assert run.series["loss/train"].steps[-1] == 49.0
    assert "the length of record 52 is damaged" in run.artifacts[0].warnings[0]


@pytest.mark.parametrize("length", [1 << 20, 1 << 40, (1 << 64) - 1])
def test_a_huge_length_is_refused(tmp_path: Path, length: int) -> None:
    path = write(tmp_path / "events", [scalar("loss", 1.0, i) for i in range(10)])
    path.write_bytes(path.read_bytes() + frame(b"x" * 50, length))
    tracemalloc.start()
    run = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(run.series["loss/train"]) == 10
    assert "ends within record 12" in run.artifacts[0].warnings[0]
    assert peak < 32 << 20


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_mutated_bytes_never_crash(tmp_path: Path, data: st.DataObject) -> None:
    original = small_file(tmp_path / "events").read_bytes()
    mutated = bytearray(original)
    for _ in range(data.draw(st.integers(1, 8))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "mutated"
    path.write_bytes(mutated)
    try:
        run = read(path)
    except UnreadableArtifact:
        return
    assert bytes(mutated) == original or run.artifacts[0].warnings


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.binary(max_size=80), max_size=10), st.data())
def test_any_payload_with_right_checksums_is_survived(
    tmp_path: Path, payloads: list[bytes], data: st.DataObject
) -> None:
    """The checksums are right, so that the parser sees every mutation."""
    good = tensor_scalar("loss", 1.0, 5, "content", "scalars").SerializeToString()
    histogram = HistogramProto(min=-1, max=1, num=2, bucket_limit=[1, 2], bucket=[2, 3])
    value = Summary.Value(tag="fc.weight", histo=histogram)
    for payload in (good, Event(step=1, summary=Summary(value=[value])).SerializeToString()):
        bad = bytearray(payload)
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
        payloads = [*payloads, *[bytes(bad)] * 5]
    path = write(tmp_path / "events", [])
    path.write_bytes(path.read_bytes() + b"".join(map(frame, payloads)))
    read(path)


def test_what_is_no_event_file_is_refused(tmp_path: Path) -> None:
    cases: dict[str, Callable[[Path], object]] = {
        "empty": lambda p: p.write_bytes(b""),
        "text": lambda p: p.write_text("epoch,loss\n1,2\n" * 20),
        "zeros": lambda p: p.write_bytes(bytes(200)),
        "records": lambda p: p.write_bytes(frame(b"a record of a data set")),
        "version": lambda p: write(p, [], version="something else"),
    }
    for name, make in cases.items():
        path = tmp_path / f"{name}.tfevents"
        make(path)
        assert sniff(path, path.read_bytes()) == 0.0
        with pytest.raises(UnreadableArtifact):
            read(path)


def test_a_file_without_scalars_says_so(tmp_path: Path) -> None:
    assert "no scalars" in read(write(tmp_path / "events", [])).artifacts[0].warnings[0]


# bounds


def test_images_are_stepped_over(tmp_path: Path) -> None:
    image = Summary.Value(tag="image", image=Summary.Image(encoded_image_string=bytes(3 << 20)))
    event = Event(wall_time=1.0, step=1, summary=Summary(value=[image])).SerializeToString()
    large = event + b"\x22" + b"\x80\x80\x80\x0a" + bytes(20 << 20)  # a graph of 20 MB
    assert len(large) > MAX_RECORD
    path = write(tmp_path / "events", [scalar("loss", 1.0, 0)])
    framed = struct.pack("<Q", len(event)), struct.pack("<Q", len(large))
    with path.open("ab") as file:  # the checksum of an image is not looked at
        for payload, header in zip(
            [*[event] * 20, large], [*[framed[0]] * 20, framed[1]], strict=True
        ):
            file.write(header + struct.pack("<I", masked(header)) + payload + bytes(4))
        file.write(frame(scalar("loss", 2.0, 1).SerializeToString()))
    tracemalloc.start()
    run = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert points(run, "loss/train") == [(0.0, 1.0), (1.0, 2.0)]
    assert run.series["loss/train"].places.tolist() == [2, 24]
    assert run.artifacts[0].warnings == ("1 records longer than 16 MB were left out",)
    assert peak < 40 << 20


def test_thinning_keeps_what_matters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_tracks, "MAX_POINTS", 400)
    monkeypatch.setattr("traindx.readers.formats.tensorboard.tfrecords.BLOCK", 5000)
    values = np.sin(np.arange(5000) / 50.0)
    values[1234], values[2345], values[3456] = 99.0, -99.0, math.nan
    run = read(write(tmp_path / "events", [scalar("loss", v, i) for i, v in enumerate(values)]))
    series = run.series["loss/train"]
    assert 50 < len(series) <= 400
    assert {0.0, 1234.0, 2345.0, 3456.0, 4999.0} <= set(series.steps.tolist())
    assert (np.diff(series.places) > 0).all()
    assert float(np.diff(series.steps).max()) < 4 * 5000 / 50
    assert "thinned" in run.artifacts[0].warnings[0]


def test_too_many_tags_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_tracks, "MAX_TAGS", 10)
    run = read(write(tmp_path / "events", [scalar(f"x{i}", 1.0, i) for i in range(50)]))
    assert len(run.series) == 10
    assert "more than 10 tags" in run.artifacts[0].warnings[0]


def test_the_total_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_tracks, "MAX_TOTAL", 1000)
    events = [scalar(f"x{i % 5}", math.sin(i), i) for i in range(5000)]
    run = read(write(tmp_path / "events", events))
    assert sum(len(s) for s in run.series.values()) <= 1000


# checksums


@given(st.lists(st.binary(max_size=700), min_size=1, max_size=8))
def test_checksums_of_many_are_those_of_each(messages: list[bytes]) -> None:
    lengths = np.array([len(m) for m in messages])
    data = np.frombuffer(b"".join(messages), dtype=np.uint8)
    found = masked_each(data, np.cumsum(lengths) - lengths, lengths)
    assert found.tolist() == [masked(m) for m in messages]


def test_checksums_are_those_of_the_writer(tmp_path: Path) -> None:
    path = write(tmp_path / "events", [scalar("loss", 1.0, i) for i in range(50)])
    (block,) = TFRecords(path)
    for start, length in zip(block.starts.tolist(), block.lengths.tolist(), strict=True):
        end = start + length
        stored = int.from_bytes(block.data[end : end + 4], "little")
        assert masked(block.data[start:end]) == stored


def test_the_reader_is_discovered() -> None:
    assert "tensorboard" in {r.name for r in readers().items}
