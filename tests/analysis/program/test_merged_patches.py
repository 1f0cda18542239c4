"""Patches of one fault in several places become one that applies."""

from __future__ import annotations

import subprocess
from difflib import unified_diff
from pathlib import Path

from traindx.analysis.program.merged_patches import merged

LINES = [f"line {n}\n" for n in range(1, 31)]


def patch_of(changed: dict[int, list[str]], name: str = "train.py") -> str:
    after = [text for n, line in enumerate(LINES, 1) for text in changed.get(n, [line])]
    return "".join(unified_diff(LINES, after, f"a/{name}", f"b/{name}"))


def applied(patch: str, folder: Path) -> list[str]:
    file = folder / "train.py"
    file.write_text("".join(LINES))
    subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=folder, check=True)
    return file.read_text().splitlines(keepends=True)


def test_far_and_near_places_are_mended_by_one_patch(tmp_path: Path) -> None:
    inserted = {3: ["line 3\n", "new 3\n"]}
    near, far = {6: ["new 6\n"]}, {25: []}
    whole = merged([patch_of(far), patch_of(inserted), patch_of(near)])
    assert whole is not None
    expected = [*LINES[:3], "new 3\n", *LINES[3:5], "new 6\n", *LINES[6:24], *LINES[25:]]
    assert applied(whole, tmp_path) == expected


def test_what_contradicts_the_first_is_left_out(tmp_path: Path) -> None:
    whole = merged([patch_of({6: ["one\n"]}), patch_of({6: ["other\n"]})])
    assert whole is not None
    assert applied(whole, tmp_path)[5] == "one\n"


def test_one_patch_stays_as_it_is() -> None:
    patch = patch_of({6: ["one\n"]})
    assert merged([patch, patch]) == patch
    assert merged([]) is None


def test_two_files_are_two_parts() -> None:
    whole = merged([patch_of({6: ["one\n"]}), patch_of({6: ["one\n"]}, "other.py")])
    assert whole is not None
    assert whole.count("--- a/") == 2
