"""Arrays of losses: numbers are read, objects never."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from traindx.errors import UnreadableArtifact
from traindx.readers.opening import open_paths


def test_an_array_named_after_its_metric(tmp_path: Path) -> None:
    np.save(tmp_path / "val_loss.npy", np.array([3.0, 2.0, 1.0], dtype=np.float32))
    run = open_paths([str(tmp_path / "val_loss.npy")])
    assert run.series["loss/val"].values.tolist() == [3.0, 2.0, 1.0]


def test_an_archive_of_several(tmp_path: Path) -> None:
    path = tmp_path / "history.npz"
    np.savez(path, train_losses=np.arange(4.0), val_acc=np.arange(4.0) / 4, x=np.eye(3))
    run = open_paths([str(tmp_path / "history.npz")])
    assert set(run.series) == {"loss/train", "accuracy/val"}


def test_the_evaluations_of_stable_baselines(tmp_path: Path) -> None:
    results = np.array([[1.0, 3.0], [2.0, 4.0], [5.0, 7.0]])
    steps = np.array([100, 200, 300])
    np.savez(tmp_path / "evaluations.npz", timesteps=steps, results=results, ep_lengths=results)
    run = open_paths([str(tmp_path / "evaluations.npz")])
    assert run.series["reward/val"].values.tolist() == [2.0, 3.0, 6.0]
    assert run.series["reward/val"].steps.tolist() == [100.0, 200.0, 300.0]


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (open, ("trap", "w"))  # type: ignore[return-value]


def test_an_array_of_objects_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "train_loss.npy", np.array([_Trap()], dtype=object), allow_pickle=True)
    assert b"trap" in (tmp_path / "train_loss.npy").read_bytes()
    with pytest.raises(UnreadableArtifact, match="no plain array"):
        open_paths([str(tmp_path / "train_loss.npy")])
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("data", [b"", b"\x01\x00v", b"\x01\x00\xff\xff{" + b"(" * 200])
def test_a_damaged_array_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "loss.npy").write_bytes(b"\x93NUMPY" + data)
    with pytest.raises(UnreadableArtifact):
        open_paths([str(tmp_path / "loss.npy")])


def test_an_array_of_data_is_not_taken_for_a_metric(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.ones((5, 5)))
    with pytest.raises(UnreadableArtifact):
        open_paths([str(tmp_path / "features.npy")])


def test_a_plain_pickle_is_still_refused(tmp_path: Path) -> None:
    (tmp_path / "loss.npy").write_bytes(pickle.dumps([1.0, 2.0]))
    with pytest.raises(UnreadableArtifact):
        open_paths([str(tmp_path / "loss.npy")])
