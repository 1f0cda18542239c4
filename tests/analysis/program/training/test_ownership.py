"""Which parameters optimizers hold, by the time at which they were listed."""

from __future__ import annotations

from traindx.analysis.program.training.freezing import frozen_untrained, switches, taken_back
from traindx.analysis.program.training.ownership import (
    collected_in_vain,
    layers_added,
    parts_held,
    unowned_layers,
    unowned_models,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run, script

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
"""
LOOP = """
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""


def _story(*lines: str) -> Story:
    return program_of(make_run(sources={"t.py": NET + "\n".join(lines) + LOOP})).stories[0]


def _unowned(*lines: str) -> set[str]:
    return {name for _, layer in unowned_layers(_story(*lines)) for name in layer.names}


def test_a_layer_that_is_replaced_after_it_was_listed_is_in_no_optimizer() -> None:
    assert _unowned("opt = torch.optim.SGD(net.parameters(), 0.1)") == set()
    later = ("opt = torch.optim.SGD(net.parameters(), 0.1)", "net.head = nn.Linear(8, 3)")
    assert _unowned(*later) == {"head"}
    assert _unowned(*reversed(later)) == set()


def test_groups_filters_and_comprehensions_hold_what_they_list() -> None:
    for given in (
        "[{'params': net.body.parameters()}, {'params': net.head.parameters()}]",
        "filter(lambda p: p.requires_grad, net.parameters())",
        "[p for n, p in net.named_parameters() if 'x' not in n]",
        "list(net.body.parameters()) + list(net.head.parameters())",
    ):
        assert _unowned(f"opt = torch.optim.Adam({given})") == set()
    assert _unowned("opt = torch.optim.Adam([{'params': net.body.parameters()}])") == {"head"}


def test_an_optimizer_out_of_sight_may_hold_anything() -> None:
    assert _unowned("opt = make_optimizer(net)") == set()
    assert _unowned("opt = torch.optim.Adam(groups_of(net))") == set()
    added = "opt.add_param_group({'params': net.head.parameters()})"
    assert _unowned("opt = torch.optim.Adam(net.body.parameters())", added) == set()


def test_one_tensor_of_a_list_is_a_part() -> None:
    held = parts_held(_story("opt = torch.optim.Adam(list(net.parameters())[-1:])"))
    assert [h.tensors for h in held] == [1]
    assert parts_held(_story("opt = torch.optim.Adam(list(net.parameters()))")) == []


def test_a_list_that_nothing_reads_is_collected_in_vain() -> None:
    fill = "a, b = [], []\nfor p in net.parameters():\n    (a if p.ndim > 1 else b).append(p)"
    (found,) = collected_in_vain(_story(fill, "opt = torch.optim.Adam(a)"))
    assert found[1].names == {"b"}
    assert collected_in_vain(_story(fill, "opt = torch.optim.Adam(a + b)")) == []
    assert collected_in_vain(_story(fill, "print(len(b))", "opt = torch.optim.Adam(a)")) == []
    put = "def put(p, a, b):\n    (a if p.ndim > 1 else b).append(p)\n    {}\na, b = [], []\n"
    put += "for p in net.parameters():\n    put(p, a, b)"
    assert collected_in_vain(_story(put.format("pass"), "opt = torch.optim.Adam(a)"))
    assert collected_in_vain(_story(put.format("show(b)"), "opt = torch.optim.Adam(a)")) == []


def test_a_layer_is_added_to_a_model_out_of_sight() -> None:
    lines = "from torchvision import models\nnet = models.resnet18()"
    made = "opt = torch.optim.Adam(net.parameters())"
    assert len(layers_added(_story(lines, made, "net.fc = nn.Linear(512, 2)"))) == 1
    assert layers_added(_story(lines, "net.fc = nn.Linear(512, 2)", made)) == []


def test_switches_know_the_model_and_whether_all_of_it_is_meant() -> None:
    opt = "opt = torch.optim.Adam(net.parameters())"
    each = "for p in net.parameters():\n    p.requires_grad = False"
    assert {s.is_whole for s in switches(_story(each, opt))} == {True}
    some = (
        "for n, p in net.named_parameters():\n    if 'body' in n:\n        p.requires_grad = False"
    )
    assert {s.is_whole for s in switches(_story(some, opt))} == {False}
    assert switches(_story("net.requires_grad = False", opt)) == []


def test_a_freeze_is_taken_back_only_where_nothing_ran_meanwhile() -> None:
    opt = "opt = torch.optim.Adam(net.parameters())"
    off = "for p in list(net.parameters())[:2]:\n    p.requires_grad = False"
    assert len(taken_back(_story(off, "net.requires_grad_(True)", opt))) == 1
    assert taken_back(_story(off, "probe(net)", "net.requires_grad_(True)", opt)) == []
    whole = "net.requires_grad_(False)"
    assert taken_back(_story(whole, "net.requires_grad_(True)", opt)) == [], "it is only set up"


def test_only_layers_that_nothing_was_loaded_into_are_frozen_at_random() -> None:
    opt = "opt = torch.optim.Adam(net.parameters())"
    off = "for p in list(net.parameters())[:2]:\n    p.requires_grad = False"
    assert len(frozen_untrained(_story(off, opt))) > 0
    load = "net.load_state_dict(torch.load('a.pt'))"
    assert frozen_untrained(_story(load, off, opt)) == []
    assert frozen_untrained(_story(off, "net.body.requires_grad_(True)", opt)) == []
    assert frozen_untrained(_story("net.body.requires_grad_(False)", opt)) == []


def test_a_chain_that_conditions_fill_is_held_whole() -> None:
    filled = """
net = nn.Sequential()
for i in range(len(kinds)):
    if kinds[i] == 'conv':
        net.add_module(str(i), nn.Conv2d(3, 8, 3))
    elif kinds[i] == 'norm':
        net.add_module(str(i), nn.BatchNorm2d(8))
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
    assert unowned_layers(_story(filled)) == []


def test_a_layer_is_no_part_of_the_graph_for_its_width() -> None:
    head = "net.head = nn.Linear(net.head.in_features, 3)"
    assert _unowned(head, "opt = torch.optim.SGD(net.parameters(), 0.1)") == set()


def test_a_model_out_of_its_wrapper_is_the_model() -> None:
    wrapped = "net = nn.parallel.DistributedDataParallel(net)"
    assert _unowned(wrapped, "opt = torch.optim.SGD(net.module.parameters(), 0.1)") == set()


def test_groups_by_rank_hold_what_is_in_sight_of_them_and_maybe_more() -> None:
    grouped = """
found = {n: p for n, p in net.named_parameters()}
found = {n: p for n, p in found.items() if p.requires_grad}
matrices = [p for n, p in found.items() if p.dim() >= 2]
others = [p for n, p in found.items() if p.dim() < 2]
opt = torch.optim.AdamW([{'params': matrices}, {'params': others, 'weight_decay': 0.0}])
"""
    assert _unowned(grouped) == set()


def test_a_group_by_a_name_that_nothing_has_is_no_selection() -> None:
    groups = (
        "def group(prefix):",
        "    return [p for n, p in net.named_parameters() if n.split('.')[0] == prefix]",
        "opt = torch.optim.Adam([{'params': group(k)} for k in ('body', 'readout')])",
    )
    assert _unowned(*groups) == {"head"}
    assert not _unowned(*(line.replace("'readout'", "'head'") for line in groups))
    assert not _unowned(groups[0], groups[1], "opt = torch.optim.Adam(group('body'))")


def test_a_model_without_an_optimizer_is_told_once() -> None:
    text = """
import torch
from torch import nn
old, net = nn.Linear(4, 2), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
opt = torch.optim.SGD({held}.parameters(), lr=0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""
    told = {}
    for held in ("old", "net", "net[0]"):
        story = program_of(script(text, held=held)).stories[0]
        told[held] = [(model.text, model.made is not None) for model in unowned_models(story)]
    assert told == {"old": [("`net`", True)], "net": [], "net[0]": [("`Linear` of `net`", True)]}
