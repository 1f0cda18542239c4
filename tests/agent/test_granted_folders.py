"""What an assistant may read: nothing leads outside the granted folders, by whatever way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from traindx.agent import tools
from traindx.agent.granted_folders import Roots, confined
from traindx.errors import TraindxError, UsageError

SECRET = "hunter2-is-the-password"
LOG = "".join(f"step {i} loss {2.0 / (i + 1):.4f}\n" for i in range(50))


@pytest.fixture
def granted(tmp_path: Path) -> Path:
    folder = tmp_path / "granted"
    folder.mkdir()
    (folder / "train.log").write_text(LOG)
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "elsewhere" / "secret.log"
    file.parent.mkdir()
    file.write_text(f"step 1 loss 0.5\nRuntimeError: {SECRET}\n")
    return file


def told(answer: tools.ToolAnswer) -> str:
    return json.dumps(answer.data)


def test_a_file_in_a_granted_folder_is_read(granted: Path) -> None:
    roots = Roots.of([granted])
    for path in (str(granted), str(granted / "train.log"), "train.log"):
        assert "loss/train" in told(tools.inspect_run(roots, [path]))


@pytest.mark.parametrize(
    "way", ["absolute", "dots", "link", "linked folder", "device", "empty", "nul"]
)
def test_a_path_that_leads_elsewhere_is_refused(granted: Path, secret: Path, way: str) -> None:
    (granted / "link.log").symlink_to(secret)
    (granted / "linked").symlink_to(secret.parent)
    path = {
        "absolute": str(secret),
        "dots": str(granted / ".." / "elsewhere" / "secret.log"),
        "link": "link.log",
        "linked folder": str(granted / "linked" / "secret.log"),
        "device": os.devnull,
        "empty": "",
        "nul": "train.log\0",
    }[way]
    with pytest.raises(UsageError) as refusal:
        tools.diagnose(Roots.of([granted]), [path])
    assert SECRET not in str(refusal.value)


def test_a_refusal_does_not_tell_whether_the_file_exists(granted: Path, secret: Path) -> None:
    roots = Roots.of([granted])
    messages = []
    for path in (str(secret), str(secret.with_name("nothing.log"))):
        with pytest.raises(UsageError) as refusal:
            tools.diagnose(roots, [path])
        messages.append(str(refusal.value).replace(path, "PATH"))
    assert messages[0] == messages[1]


def test_standard_input_and_pipes_are_no_files(granted: Path) -> None:
    os.mkfifo(granted / "pipe.log")
    for path in ("-", "pipe.log"):
        with pytest.raises(TraindxError):
            tools.diagnose(Roots.of([granted]), [path])


def test_a_link_in_a_folder_is_not_followed_outside(granted: Path, secret: Path) -> None:
    (granted / "error.log").symlink_to(secret)
    (granted / "model.py").symlink_to(secret)
    roots = Roots.of([granted])
    for answer in (
        tools.inspect_run(roots, [str(granted)], detail="full"),
        tools.diagnose(roots, [str(granted)], detail="full"),
        tools.check_source(roots, [str(granted)], detail="full"),
    ):
        assert SECRET not in told(answer)
        assert "outside the folders that were granted" in told(answer)


def test_a_pipe_in_a_folder_does_not_hold_up_the_check(granted: Path) -> None:
    os.mkfifo(granted / "train.py")
    answer = tools.check_source(Roots.of([granted]), [str(granted)])
    assert "pipe or a device" in told(answer)


def test_links_inside_the_granted_folders_are_followed(granted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept.log").write_text(LOG)
    (granted / "linked.log").symlink_to(other / "kept.log")
    both = Roots.of([granted, other])
    assert "loss/train" in told(tools.inspect_run(both, ["linked.log"]))


@pytest.mark.parametrize("named", ["{secret}", "../elsewhere/secret.log", "error.log"])
def test_a_context_package_leads_nowhere_else(granted: Path, secret: Path, named: str) -> None:
    (granted / "error.log").symlink_to(secret)
    package = granted / "package.json"
    listed = {"error_messages": [named.format(secret=secret)], "training_logs": "train.log"}
    package.write_text(json.dumps({"artifacts": listed}))
    try:
        answer = tools.diagnose(Roots.of([granted]), context="package.json", detail="full")
    except UsageError as refusal:
        assert SECRET not in str(refusal)
    else:
        assert SECRET not in told(answer)


def test_a_recording_leads_nowhere_else(granted: Path, secret: Path) -> None:
    folder = granted / "recorded"
    (folder / "sources").mkdir(parents=True)
    (folder / "run.json").write_text('{"k": "run", "command": ["python"], "exit_code": 1}')
    (folder / "12.stack").symlink_to(secret)
    (folder / "sources" / "index.json").write_text(
        json.dumps({"../../../elsewhere/secret.log": "train.py", str(secret): "model.py"})
    )
    answer = tools.inspect_run(Roots.of([granted]), [str(folder)], detail="full")
    assert SECRET not in told(answer)


def test_a_tracker_or_a_sharded_checkpoint_leads_nowhere_else(granted: Path, secret: Path) -> None:
    run = granted / "mlruns" / "0" / "abc"
    (run / "metrics").mkdir(parents=True)
    (run / "params").mkdir()
    uri = secret.parent.as_uri()
    (run / "meta.yaml").write_text(f"run_id: abc\nartifact_uri: {uri}\nstatus: 3\n")
    (run / "metrics" / "loss").write_text("1 0.5 1\n2 0.4 2\n")
    (run / "params" / "lr").symlink_to(secret)
    weights = granted / "weights"
    weights.mkdir()
    (weights / "shard.safetensors").symlink_to(secret)
    shards = {"a": "shard.safetensors", "b": "../../elsewhere/secret.log", "c": str(secret)}
    (weights / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    roots = Roots.of([granted])
    for folder in (run, weights):
        try:
            answer = tools.inspect_run(roots, [str(folder)], detail="full")
        except TraindxError as error:
            assert SECRET not in str(error)
        else:
            assert SECRET not in told(answer)


def test_nothing_is_written_in_the_granted_folders(granted: Path) -> None:
    with confined(Roots.of([granted])), pytest.raises(PermissionError):
        (granted / "new.txt").write_text("")
    (granted / "new.txt").write_text("")  # outside the guard everything is as before


def test_roots_come_as_addresses() -> None:
    here = Path(__file__).parent
    assert Roots.of_uris([here.as_uri()]).folders == (Path(os.path.realpath(here)),)
    assert Roots.of_uris(["https://example.org/x", "file:///no/such/folder"]).folders == ()


def test_without_any_folder_everything_is_refused(granted: Path) -> None:
    with pytest.raises(UsageError, match="no folder was granted"):
        tools.diagnose(Roots.of([]), [str(granted)])


def test_a_folder_with_a_blank_in_its_name_is_granted(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    (folder / "train.log").write_text(LOG)
    roots = Roots.of_uris([folder.as_uri()])
    assert "loss/train" in told(tools.inspect_run(roots, ["train.log"]))
