"""Notebooks as nbformat writes them: code to source, outputs to console text."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers.damage import few, mutated, survive

from traindx import open_run
from traindx.errors import UnreadableArtifact
from traindx.readers.formats.notebook.html_tables import read_tables
from traindx.readers.formats.notebook.reader import read, sniff

FASTAI = (
    '<style>p {}</style>\n<table border="1" class="dataframe">\n  <thead>\n    <tr>'
    "<th>epoch</th><th>train_loss</th><th>valid_loss</th><th>accuracy</th><th>time</th></tr>"
    "</thead><tbody>"
    + "".join(
        f"<tr><td>{i}</td><td>{2 / (i + 1):.6f}</td><td>{3 / (i + 1):.6f}</td><td>0.{5 + i}</td>"
        "<td>00:12</td></tr>"
        for i in range(4)
    )
    + "</tbody></table>"
)
TRAINER = (
    "<div><progress value='20' max='20'></progress>[20/20 00:10, Epoch 2/2]</div>"
    '<table border="1" class="dataframe"><thead><tr style="text-align: left;"><th>Epoch</th>'
    "<th>Training Loss</th><th>Validation Loss</th></tr></thead><tbody>"
    "<tr><td>1</td><td>No log</td><td>0.693000</td></tr>"
    "<tr><td>2</td><td>0.500000</td><td>0.600000</td></tr></tbody></table><p>"
)
DATA = "<table><tr><th></th><th>age</th><th>score</th></tr><tr><td>0</td><td>3</td><td>4</td></tr></table>"
ERROR = {
    "output_type": "error",
    "ename": "RuntimeError",
    "evalue": "boom",
    "traceback": [
        "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
        "\x1b[0;31mRuntimeError\x1b[0m                              Traceback (most recent call last)",
        "Cell \x1b[0;32mIn[5], line 1\x1b[0m\n\x1b[0;32m----> 1\x1b[0m \x1b[38;5;28;01mraise\x1b[39;00m "
        '\x1b[38;5;167;01mRuntimeError\x1b[39;00m(\x1b[38;5;124m"\x1b[39mboom\x1b[38;5;124m"\x1b[39m)\n',
        "\x1b[0;31mRuntimeError\x1b[0m: boom",
    ],
}


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": list(outputs),
            "source": source.splitlines(keepends=True)}  # fmt: skip


def shown(html: str) -> dict[str, Any]:
    data = {"text/html": [html], "text/plain": ["<IPython.core.display.HTML object>"]}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def printed(text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    return {"output_type": "stream", "name": "stdout", "text": lines}


def notebook(*cells: dict[str, Any]) -> bytes:
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# torch"]}
    document = {"cells": [title, *cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1).encode()


def opened(folder: Path, *cells: dict[str, Any]) -> Any:
    path = folder / "nb.ipynb"
    path.write_bytes(notebook(*cells))
    return read(path)


def test_a_notebook_is_recognised_by_what_is_in_it(tmp_path: Path) -> None:
    data = notebook(code("import torch"))
    assert sniff(tmp_path / "nb.ipynb", data) == 0.98
    assert sniff(tmp_path / "x.json", data) == 0.98
    assert sniff(tmp_path / "x.json", b'{"cells": 3}') == 0.0


def test_code_is_one_program_that_parses(tmp_path: Path) -> None:
    magic = (
        "%matplotlib inline\n!pip install a \\\n  b\nfiles = !ls\nif files:\n    %time x\nlearn?\n"
    )
    run = opened(
        tmp_path, code(magic), code("%%bash\nls | wc"), code("import torch\nloss.backward()")
    )
    (source,) = run.sources
    ast.parse(source.text)
    assert "files = None  # !ls" in source.text
    line = source.text.split("\n").index("loss.backward()") + 1
    assert source.where(line) == "cell 4, line 2"


def test_findings_point_into_cells(tmp_path: Path) -> None:
    from traindx import diagnose

    loop = (
        "import torch\nmodel = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x, y in loader:\n    loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    path = tmp_path / "nb.ipynb"
    path.write_bytes(notebook(code("import os"), code(loop)))
    found = [e for f in diagnose(open_run(path)).findings for e in f.evidence]
    assert any(e.locator.startswith("cell 3, line ") for e in found)


def test_the_table_of_fastai(tmp_path: Path) -> None:
    run = opened(tmp_path, code("learn.fit(4)", shown(FASTAI)))
    assert run.series["loss/train"].values.tolist() == [2.0, 1.0, 0.666667, 0.5]
    assert run.series["loss/val"].steps.tolist() == [0, 1, 2, 3]
    assert run.series["accuracy/val"].values.tolist() == [0.5, 0.6, 0.7, 0.8]
    assert run.series["loss/val"].where(0) == "cell 2"


def test_the_table_of_the_trainer(tmp_path: Path) -> None:
    run = opened(tmp_path, code("trainer.train()", shown(TRAINER)))
    assert run.series["loss/val"].values.tolist() == [0.693, 0.6]
    assert run.series["loss/train"].values.tolist() == [0.5]


def test_a_table_of_data_is_no_metric(tmp_path: Path) -> None:
    assert not opened(tmp_path, code("frame.head()", shown(DATA))).series


def test_outputs_are_console_text(tmp_path: Path) -> None:
    lines = "step 0 loss 1.0\nstep 1 loss 0.9\nUserWarning: gradient overflow\n"
    run = opened(tmp_path, code("x"), code("train()", printed(lines), ERROR))
    assert run.series["loss/train"].values.tolist() == [1.0, 0.9]
    assert run.events[0].locator == "cell 3, output line 3"
    (failure,) = run.failures
    assert (failure.type, failure.message) == ("RuntimeError", "boom")
    assert failure.locator.startswith("cell 3, output line ")
    assert failure.frames[0].line == 1


def test_an_error_without_a_traceback(tmp_path: Path) -> None:
    bare = {**ERROR, "traceback": []}
    assert [f.message for f in opened(tmp_path, code("x", bare)).failures] == ["boom"]


def test_a_folder_with_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "nb.ipynb").write_bytes(
        notebook(code("import torch", printed("step 0 loss 1.0\n")))
    )
    assert open_run(tmp_path).sources


def test_a_cut_notebook_keeps_its_first_cells(tmp_path: Path) -> None:
    data = notebook(*(code(f"x = {i}", printed(f"step {i} loss 0.5\n")) for i in range(20)))
    path = tmp_path / "nb.ipynb"
    path.write_bytes(data[: int(0.7 * len(data))])
    run = read(path)
    assert 5 < len(run.series["loss/train"]) < 20
    assert run.artifacts[0].warnings


def test_an_old_notebook_has_worksheets(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "input": ["import torch"], "outputs": [], "language": "python"}
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}], "metadata": {}}))
    assert "import torch" in read(path).sources[0].text


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text("[1, 2]")
    with pytest.raises(UnreadableArtifact):
        read(path)


WHOLE = notebook(
    code("%time\nimport torch", printed("step 1 loss 2\n"), ERROR), code("a", shown(FASTAI))
)


@given(mutated(WHOLE) | st.binary(max_size=300))
@few
def test_any_damage_is_survived(data: bytes) -> None:
    survive(read, data, "nb.ipynb")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cells", "cell_type", "outputs", "source", "data", "text", "text/html",
                             "traceback", "ename", "output_type", "worksheets"]), inner, max_size=4),
        max_leaves=12,
    )
)  # fmt: skip
@few
def test_any_document_is_survived(document: Any) -> None:
    survive(read, json.dumps({"cells": [document], "nbformat": 4}).encode(), "nb.ipynb")


@given(st.text(max_size=300) | st.text(alphabet="<>/table rdh!-[]&#;x01", max_size=200))
@few
def test_any_html_is_survived(html: str) -> None:
    read_tables(html)
