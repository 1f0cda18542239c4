"""Configurations in every spelling: the value, and the line it stands in."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.errors import UnreadableArtifact
from traindx.model.run import Run
from traindx.readers.formats.settings import read, sniff


def write(folder: Path, text: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def sniffed(path: Path) -> float:
    return sniff(path, path.read_bytes()[: 64 << 10])


def value(run: Run, name: str) -> Any:
    setting = run.config.find(name)
    assert setting is not None, [s.key for s in run.config.settings]
    return setting.value


def line(run: Run, name: str) -> str:
    setting = run.config.find(name)
    assert setting is not None
    return setting.locator


YAML = """# an experiment
model:
  name: resnet18
  layers: [64, 128]
optim:
  lr: 1e-2
  betas:
    - 0.9
    - 0.999
epochs: 10
amp: true
"""


def test_yaml_keeps_lines_and_values(tmp_path: Path) -> None:
    path = write(tmp_path, YAML, "config.yaml")
    run = read(path)
    assert sniffed(path) > 0.7
    assert value(run, "lr") == "1e-2"  # YAML says text; people mean a number
    assert run.config.number("lr") == 0.01
    assert line(run, "lr") == "line 6"
    assert value(run, "betas") == [0.9, 0.999]
    assert value(run, "layers") == [64, 128]
    assert value(run, "amp") is True
    assert {s.key for s in run.config.settings} >= {"optim.lr", "model.name", "epochs"}


def test_merge_keys_and_wandb_values(tmp_path: Path) -> None:
    run = read(write(tmp_path, "base: &b\n  lr: 0.1\ntrain:\n  <<: *b\n  epochs: 3\n", "c.yaml"))
    assert "train.lr" in {s.key for s in run.config.settings}
    wandb = "_wandb:\n  value:\n    t: 1\nlr:\n  desc: null\n  value: 0.1\nepochs:\n  value: 3\n"
    run = read(write(tmp_path, wandb, "config.yaml"))
    assert {s.key: s.value for s in run.config.settings} == {"lr": 0.1, "epochs": 3}


def test_tags_are_never_carried_out(tmp_path: Path) -> None:
    target = tmp_path / "made"
    text = f"lr: 0.1\nevil: !!python/object/apply:os.system ['touch {target}']\n"
    text += "path: !!python/object/apply:pathlib.PosixPath\n- /tmp\nold: !custom thing\n"
    run = read(write(tmp_path, text, "hparams.yaml"))
    assert value(run, "lr") == 0.1
    assert value(run, "old") == "thing"
    assert not target.exists()


def test_an_alias_bomb_is_bounded(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    run = read(write(tmp_path, "lr: 0.1\n" + "\n".join(rows), "bomb.yaml"))
    assert value(run, "lr") == 0.1
    assert "only the first" in run.artifacts[0].warnings[0]


@pytest.mark.parametrize("nested", ["[" * 20_000, "a: " + "{b: " * 5000, "- " * 20_000])
def test_deep_yaml_is_refused_or_read_by_lines(tmp_path: Path, nested: str) -> None:
    run = read(write(tmp_path, f"lr: 0.1\nx: 1\n{nested}\n", "deep.yaml"))
    assert run.config.number("lr") == 0.1
    assert "damaged" in run.artifacts[0].warnings[0]


def test_an_alias_to_itself(tmp_path: Path) -> None:
    run = read(write(tmp_path, "lr: 0.1\nx: &x\n  y: *x\n", "loop.yaml"))
    assert value(run, "lr") == 0.1


def test_broken_yaml_is_read_line_by_line(tmp_path: Path) -> None:
    run = read(write(tmp_path, "lr: 0.1\n\tbad: [\nepochs: 3\n", "c.yaml"))
    assert value(run, "lr") == 0.1
    assert line(run, "epochs") == "line 3"
    assert "damaged" in run.artifacts[0].warnings[0]


def test_toml(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[optim]\nname = "adamw"\nlr = 1e-3\n[train]\nepochs = 3\nlr = 2\n', "c.toml"
    )
    run = read(path)
    assert sniffed(path) > 0.7
    assert {s.key: (s.value, s.locator) for s in run.config.settings} == {
        "optim.name": ("adamw", "line 2"),
        "optim.lr": (0.001, "line 3"),
        "train.epochs": (3, "line 5"),
        "train.lr": (2, "line 6"),
    }


def test_ini(tmp_path: Path) -> None:
    run = read(
        write(tmp_path, "[train]\nlr = 0.1\nepochs: 3 # few\n; no\n[data]\npath = /x\n", "c.ini")
    )
    assert {s.key: s.value for s in run.config.settings} == {
        "train.lr": 0.1,
        "train.epochs": 3,
        "data.path": "/x",
    }


def test_a_printed_namespace(tmp_path: Path) -> None:
    text = (
        "Namespace(lr=0.1, batch_size=32, betas=(0.9, 0.99), name='a, b=c', d=device(type='cuda'))"
    )
    path = write(tmp_path, text, "args.txt")
    run = read(path)
    assert sniffed(path) > 0.7
    assert value(run, "lr") == 0.1
    assert value(run, "betas") == (0.9, 0.99)
    assert value(run, "name") == "a, b=c"
    assert value(run, "d") == "device(type='cuda')"


def test_printed_training_arguments_are_no_python(tmp_path: Path) -> None:
    arguments = ["_n_gpu=1", "adam_beta1=0.9", "hub_token=<HUB_TOKEN>", "learning_rate=5e-05"]
    text = "TrainingArguments(\n" + ",\n".join(arguments) + ",\n)"
    run = read(write(tmp_path, text, "args.txt"))
    assert value(run, "learning_rate") == 5e-5
    assert line(run, "learning_rate") == "line 5"
    assert value(run, "hub_token") == "<HUB_TOKEN>"


@pytest.mark.parametrize(
    "text",
    [
        "learning_rate: 0.1\nbatch_size: 32\nepochs: 3\nname: x\n",
        "learning_rate = 0.1\nbatch_size = 32\nepochs = 3\n",
        "--learning_rate=0.1\n--batch_size=32\n--epochs=3\n",
        "  learning_rate ........... 0.1\n  batch_size .............. 32\n  epochs ....... 3\n",
    ],
)
def test_printed_arguments(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text, "args.txt")
    run = read(path)
    assert sniffed(path) > 0.5
    assert run.config.number("learning_rate") == 0.1
    assert line(run, "batch_size") == "line 2"


def test_several_settings_in_a_line(tmp_path: Path) -> None:
    run = read(write(tmp_path, "lr0=0.01, momentum=0.9, name=exp 1, freeze=[0]\n", "hyp.txt"))
    assert {s.key: s.value for s in run.config.settings} == {
        "lr0": 0.01, "momentum": 0.9, "name": "exp 1", "freeze": [0]}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[tool.ruff]\nline-length = 100\n", "pyproject.toml"),
        ("version: 2\nservices:\n  web:\n    image: x\n", "compose.yaml"),
        ("Epoch 1 loss: 0.5\nEpoch 2 loss: 0.4\n", "train.log"),
        ("loss: 0.5\nloss: 0.4\nlr: 0.1\nloss: 0.3\nlr: 0.1\nloss: 0.2\n", "train.log"),
        ("Namespace(lr=0.1, epochs=3)\nepoch 1 loss 0.5\nepoch 2 loss 0.4\n", "train.log"),
        ("Dear all: this is prose.\nIt goes on.\nAnd on.\n", "notes.txt"),
        ('{"lr": 0.1, "epochs": 3}', "config.json"),
    ],
)
def test_what_configures_no_training_sniffs_low(tmp_path: Path, text: str, name: str) -> None:
    assert sniffed(write(tmp_path, text, name)) < 0.3


@pytest.mark.parametrize("data", [b"", b"\x00\x01" * 500, b"only prose here\n"])
def test_what_holds_nothing_is_unreadable(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableArtifact):
        read(write(tmp_path, data, "config.yaml"))


@given(st.text(max_size=120), st.sampled_from([".yaml", ".toml", ".ini", ".txt"]))
def test_any_text_is_read_or_refused(text: str, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), text.encode("utf-8", "replace"), f"config{suffix}")
        assert 0.0 <= sniffed(path) <= 1.0
        with contextlib.suppress(UnreadableArtifact):
            read(path)


@given(st.lists(st.sampled_from(["lr", ":", "=", " ", "\n", "[", "]", "{", "}", "- ", "&a", "*a",
                                 "1e-3", "Namespace(", ")", ",", "'", '"', "#", "<<", "!!x"]),
                max_size=30), st.sampled_from([".yaml", ".toml", ".ini", ".txt"]))  # fmt: skip
def test_any_tokens_are_read_or_refused(tokens: list[str], suffix: str) -> None:
    test_any_text_is_read_or_refused.hypothesis.inner_test("".join(tokens), suffix)  # type: ignore[attr-defined]


def test_a_toml_key_of_many_parts_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    text = ".".join("a" * 50_000) + " = 1\n\nlr = 0.1\n"
    run = read(write(tmp_path, text, "config.toml"))
    assert value(run, "lr") == 0.1
    assert "more than 40 parts" in run.artifacts[0].warnings[0]
