"""One program for the examples that differ in a line."""

import pytest

from traindx.examples import IMPORTS, script, template

PROGRAM = template("""
model = nn.Linear({width}, {height:2})
opts = {{"all": model}}
{step:optimizer.step()}
""")


@pytest.mark.parametrize(
    ("given", "named", "lines"),
    [
        ((4,), {}, ["model = nn.Linear(4, 2)", "optimizer.step()"]),
        ((4, 3), {}, ["model = nn.Linear(4, 3)", "optimizer.step()"]),
        ((4,), {"step": "pass"}, ["model = nn.Linear(4, 2)", "pass"]),
    ],
)
def test_a_blank_says_what_usually_fills_it(given, named, lines):
    text = PROGRAM(*given, **named).sources[0].text
    assert text.startswith(IMPORTS)
    first, *rest = text.removeprefix(IMPORTS).strip().split("\n")
    assert [first, rest[-1]] == lines
    assert rest[0] == 'opts = {"all": model}'


def test_the_usual_imports_stand_where_a_program_has_none_of_torch():
    assert script("import lightning\n").sources[0].text == IMPORTS + "import lightning\n"
    assert script("from torch import nn\n").sources[0].text == "from torch import nn\n"
