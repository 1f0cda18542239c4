"""From paths to one run: what is found, what is left out, and what is said about it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from traindx.errors import UnreadableArtifact
from traindx.model.run import Run
from traindx.readers import folders, opening
from traindx.readers.folders import find_runs
from traindx.readers.opening import open_paths
from traindx.registry import Discovered, Reader, readers

CSV = "step,train_loss,val_loss\n" + "".join(
    f"{i},{1 / (i + 1)},{2 / (i + 1)}\n" for i in range(20)
)


def curve(scale: float, count: int = 20) -> str:
    return "step,loss\n" + "".join(f"{i},{scale / (i + 1.37)}\n" for i in range(count))


def warnings(run: Run) -> str:
    return "\n".join(f"{a.path}: {w}" for a in run.artifacts for w in a.warnings)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n\nloss.backward()\n")
    (tmp_path / "config.yaml").write_text("lr: 0.1\nepochs: 3\n")
    (tmp_path / "metrics.csv").write_text(CSV)
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG" + bytes(100))
    for hidden in (".git", "node_modules", "__pycache__", ".venv"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "metrics.csv").write_text(CSV)
    return tmp_path


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("metrics.csv").write_text(CSV)
    run = open_paths(["metrics.csv"], symptoms=["loss is flat"])
    assert set(run.series) == {"loss/train", "loss/val"}
    assert run.series["loss/train"].origin.artifact == "metrics.csv"
    assert [(a.path, a.reader) for a in run.artifacts] == [("metrics.csv", "table")]
    assert run.symptoms == ("loss is flat",)
    assert run.name == "metrics.csv"


def test_a_folder(project: Path) -> None:
    run = open_paths([str(project)])
    read = {Path(a.path).name: a.reader for a in run.artifacts if a.reader}
    assert read == {"train.py": "python", "config.yaml": "settings", "metrics.csv": "table"}
    assert run.config.number("lr") == 0.1
    assert run.sources[0].path == str(project / "train.py")
    assert "notes.txt" in warnings(run)


def test_no_path_is_the_current_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    run = open_paths([])
    assert run.series["loss/train"].origin.artifact == "metrics.csv"
    assert run.name == project.name


def test_standard_input() -> None:
    run = open_paths(["-"], stdin=io.BytesIO(CSV.encode()))
    assert run.series["loss/train"].origin.artifact == "standard input"
    assert run.artifacts[0].path == "standard input"
    assert run.name == "standard input"


def test_nothing_on_standard_input() -> None:
    with pytest.raises(UnreadableArtifact, match=r"standard input.*empty"):
        open_paths(["-"], stdin=io.BytesIO(b""))


def test_standard_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_STDIN", 1 << 20)
    long = curve(1.0, 60_000).encode()
    run = open_paths(["-"], stdin=io.BytesIO(long))
    assert "only the first" in warnings(run)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(CSV)
    with pytest.raises(UnreadableArtifact, match=r"gone\.csv: it does not exist"):
        open_paths([str(tmp_path / "metrics.csv"), str(tmp_path / "gone.csv")])
    with pytest.raises(UnreadableArtifact):
        open_paths(["a\0b"])


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "empty"), (b"\n\n", "empty"), (bytes(range(256)) * 50, "binary")],
)
def test_a_named_file_that_holds_nothing(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "thing.bin"
    path.write_bytes(data)
    with pytest.raises(UnreadableArtifact, match=why) as caught:
        open_paths([str(path)])
    assert "thing.bin" in str(caught.value)
    assert "Try:" in str(caught.value)


def test_of_several_files_the_unreadable_become_warnings(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(CSV)
    (tmp_path / "empty.log").write_text("")
    run = open_paths([str(tmp_path / "empty.log"), str(tmp_path / "metrics.csv")])
    assert run.series
    assert "empty.log: it is empty" in warnings(run)


def test_the_same_file_twice_is_read_once(project: Path) -> None:
    run = open_paths([str(project / "metrics.csv"), str(project), str(project / "metrics.csv")])
    assert [Path(a.path).name for a in run.artifacts if a.reader].count("metrics.csv") == 1


def test_a_data_set_that_is_named_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    assert set(open_paths([str(path)]).series) == {"other/a", "other/b"}
    with pytest.raises(UnreadableArtifact, match="none of the 1 files"):
        open_paths([str(tmp_path)])


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableArtifact, match="none of the 0 files"):
        open_paths([str(tmp_path)])


def test_ten_thousand_unrelated_files(project: Path) -> None:
    for i in range(100):
        folder = project / f"labels{i}"
        folder.mkdir()
        for j in range(100):
            (folder / f"{j}.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    run = open_paths([str(project)])
    assert len(run.series["loss/train"]) == 20
    assert run.sources
    assert "left out" in warnings(run) or "not looked at" in warnings(run)


def test_links_in_a_circle(project: Path) -> None:
    (project / "loop").symlink_to(project, target_is_directory=True)
    (project / "self").symlink_to("self")
    (project / "nowhere.csv").symlink_to("gone")
    run = open_paths([str(project)])
    assert len(run.series["loss/train"]) == 20
    with pytest.raises(UnreadableArtifact, match="cannot be opened"):
        open_paths([str(project / "self")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_or_a_device_does_not_hang(project: Path) -> None:
    os.mkfifo(project / "pipe.log")
    assert open_paths([str(project)]).series
    with pytest.raises(UnreadableArtifact, match="pipe or a device"):
        open_paths([str(project / "pipe.log")])
    with pytest.raises(UnreadableArtifact, match="pipe or a device"):
        open_paths(["/dev/zero"])


def test_a_file_that_may_not_be_opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def guarded(self: Path, *args: Any, **options: Any) -> Any:
        if self.name == "config.yaml":
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **options)

    monkeypatch.setattr(Path, "open", guarded)
    run = open_paths([str(project)])
    assert run.series
    assert "config.yaml cannot be opened: Permission denied" in warnings(run)
    with pytest.raises(UnreadableArtifact, match="Permission denied"):
        open_paths([str(project / "config.yaml")])


def test_a_folder_that_may_not_be_opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "secret").mkdir()
    real = os.scandir

    def guarded(path: Any) -> Any:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(folders.os, "scandir", guarded)
    assert "secret cannot be opened" in warnings(open_paths([str(project)]))


def test_a_reader_that_crashes_costs_only_its_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: Path) -> Run:
        raise ZeroDivisionError("oops")

    def choke(path: Path, head: bytes) -> float:
        raise ValueError("choked")

    fragile = Reader("fragile", lambda path, head: float(path.name == "notes.txt"), crash)
    found = (*readers().items, fragile, Reader("choking", choke, crash))
    monkeypatch.setattr(folders, "readers", lambda: Discovered(found))
    run = open_paths([str(project)])
    assert run.series
    assert "notes.txt: the fragile reader failed on it: ZeroDivisionError: oops" in warnings(run)


def test_a_traceback_among_json_lines_is_read_too(tmp_path: Path) -> None:
    lines = [json.dumps({"step": i, "loss": 1 / (i + 1)}) for i in range(20)]
    lines += [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    loss.backward()",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    ]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    run = open_paths([str(tmp_path / "log.txt")])
    assert len(run.series["loss/train"]) == 20
    assert run.failures[0].type == "RuntimeError"
    assert run.failures[0].artifact == str(tmp_path / "log.txt")


def make_runs(root: Path, count: int = 3) -> None:
    for i in range(count):
        folder = root / "lightning_logs" / f"version_{i}"
        folder.mkdir(parents=True)
        (folder / "metrics.csv").write_text(curve(1.0 + i))
        (folder / "hparams.yaml").write_text(f"lr: 0.{i + 1}\n")
        os.utime(folder / "metrics.csv", (1e9, 1e9 + 1000.0 * (i == 1)))


def test_of_several_runs_the_newest_is_read(tmp_path: Path) -> None:
    make_runs(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    run = open_paths([str(tmp_path)])
    assert "version_1" in run.series["loss/train"].origin.artifact
    assert "loss/train@2" not in run.series
    assert run.config.number("lr") == 0.2
    assert run.sources
    (event,) = (e for e in run.events if e.kind == "warning")
    assert "version_0" in event.text
    assert "version_2" in event.text
    assert "traindx scan" in event.text
    assert event.text in warnings(run)


def test_runs_that_were_copied_are_compared_by_size(tmp_path: Path) -> None:
    for name, count in (("a", 10), ("b", 90), ("c", 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.csv").write_text(curve(1.0, count))
        os.utime(tmp_path / name / "metrics.csv", (1e9, 1e9))
    assert len(open_paths([str(tmp_path)]).series["loss/train"]) == 90


def test_runs_below_runs(tmp_path: Path) -> None:
    make_runs(tmp_path / "first")
    make_runs(tmp_path / "second", 2)
    run = open_paths([str(tmp_path)])
    assert len({s.origin.artifact for s in run.series.values()}) == 1
    assert len(find_runs(tmp_path)) == 5


def test_find_runs(tmp_path: Path, project: Path) -> None:
    assert find_runs(project) == [project]
    make_runs(project)
    found = {p.name for p in find_runs(project)}
    assert {"version_0", "version_1", "version_2"} == found


@pytest.mark.parametrize("names", [("train", "val"), ("rank_0", "rank_1")])
def test_parts_of_one_run_stay_together(tmp_path: Path, names: tuple[str, str]) -> None:
    for i, name in enumerate(names):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.csv").write_text(curve(1.0 + i))
    run = open_paths([str(tmp_path)])
    assert len([a for a in run.artifacts if a.reader]) == 2
    assert not [e for e in run.events if "runs" in e.text and "holds" in e.text]


def test_files_of_several_runs_in_one_folder(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"lr{i}.csv").write_text(curve(1.0 + i))
        os.utime(tmp_path / f"lr{i}.csv", (1e9, 1e9 + 1000.0 * (i == 1)))
    run = open_paths([str(tmp_path)])
    assert set(run.series) == {"loss/train"}
    assert run.series["loss/train"].origin.artifact.endswith("lr1.csv")
    assert "it holds 3 runs" in warnings(run)


@pytest.mark.parametrize("more", ["", ",lr"])
def test_two_runs_given_together_are_refused(tmp_path: Path, more: str) -> None:
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(curve(1.0 + i))
    header, *rows = (tmp_path / "1.csv").read_text().splitlines()
    cells = [f"{row}{',0.1' if more else ''}" for row in rows]
    (tmp_path / "1.csv").write_text("\n".join([header + more, *cells]))
    with pytest.raises(UnreadableArtifact, match=r"of another run than .*0\.csv"):
        open_paths([str(tmp_path / "0.csv"), str(tmp_path / "1.csv")])


def test_a_log_and_a_table_that_differ_are_both_kept_and_noted(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text(curve(1.0))
    lines = [f"step {i} loss {3.0 / (i + 2):.4f}" for i in range(20)]
    (tmp_path / "1.log").write_text("\n".join(lines))
    run = open_paths([str(tmp_path / "0.csv"), str(tmp_path / "1.log")])
    assert {"loss/train", "loss/train@2"} <= set(run.series)
    assert any("two runs" in e.text for e in run.events)


def test_the_last_checkpoint_holds_the_history(tmp_path: Path) -> None:
    for step in (50, 100, 1000):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        history = [{"step": i, "loss": 1 / i} for i in range(10, step + 1, 10)]
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    run = open_paths([str(tmp_path)])
    assert len(run.series["loss/train"]) == 100
    assert len([a for a in run.artifacts if a.reader]) == 1


def test_many_sources_are_bounded(tmp_path: Path) -> None:
    for i in range(120):
        (tmp_path / f"module{i}.py").write_text("import os\n")
    (tmp_path / "zz_train.py").write_text("import torch\nloss.backward()\n")
    run = open_paths([str(tmp_path)])
    assert len(run.sources) == folders.MAX_SOURCES
    assert any(s.path.endswith("zz_train.py") for s in run.sources)
    assert "Python files were left out" in warnings(run)


# context packages


def package(folder: Path, **data: Any) -> str:
    path = folder / "context.json"
    path.write_text(json.dumps(data))
    return str(path)


def test_a_context_package(project: Path) -> None:
    context = package(
        project,
        artifacts={"loss_curves": "metrics.csv", "model_code": ["train.py", "gone.py"],
                   "config": "config.yaml"},
        symptoms=["Loss diverged at epoch 7"],
        constraints={"max_analysis_time": "5 minutes"},
    )  # fmt: skip
    run = open_paths([], context=context, symptoms=["it is slow"])
    assert run.series
    assert run.sources
    assert run.config.number("lr") == 0.1
    assert run.symptoms == ("it is slow", "Loss diverged at epoch 7")
    missing = [a for a in run.artifacts if not a.reader]
    assert [a.path for a in missing] == ["gone.py"]
    assert "does not exist" in missing[0].warnings[0]


def test_paths_in_a_package_fall_back_to_the_current_folder(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    context = package(elsewhere, artifacts={"loss_curves": "metrics.csv"})
    assert open_paths([], context=context).series["loss/train"].origin.artifact == "metrics.csv"


def test_a_package_may_hold_nothing_but_symptoms(tmp_path: Path) -> None:
    run = open_paths([], context=package(tmp_path, symptoms=["NaN"], artifacts={"config": "no"}))
    assert run.symptoms == ("NaN",)
    assert not run.series


def test_a_package_may_spell_out_what_it_is_asked_to_name(tmp_path: Path) -> None:
    run = open_paths([], context=package(tmp_path, artifacts={"config": {"lr": 0.1, "epochs": 3}}))
    assert run.config.number("lr") == 0.1
    assert run.config.settings[0].artifact.endswith("context.json: config")


@pytest.mark.parametrize("data", [{"artifacts": [1, None, {}]}, {"artifacts": 5}, {"artifacts":
                         {"config": ["", 3]}}, {"symptoms": "one"}, {}])  # fmt: skip
def test_an_odd_package_is_noted_not_fatal(tmp_path: Path, data: dict[str, Any]) -> None:
    run = open_paths([], context=package(tmp_path, **data))
    assert run.name == "context.json"


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", "[" * 100_000])
def test_what_is_no_package_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "context.json").write_text(text)
    with pytest.raises(UnreadableArtifact, match=r"context\.json"):
        open_paths([], context=str(tmp_path / "context.json"))
    with pytest.raises(UnreadableArtifact):
        open_paths([], context=str(tmp_path / "gone.json"))


@pytest.mark.parametrize("role", ["x" * 5000, "a\0b", "\ud800", "../../up", "a/b\nc"], ids=ascii)
def test_a_role_of_any_spelling_is_read(tmp_path: Path, role: str) -> None:
    context = package(tmp_path, artifacts={role: "step 1 loss 1.0 \ud800\nstep 2 loss 0.9\n"})
    run = open_paths([], context=context, symptoms=[])
    assert len(run.series["loss/train"]) == 2
