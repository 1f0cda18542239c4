"""Questions in words: who is sent for, in which order, and what pressure does to it (nothing)."""

from __future__ import annotations

import json

import pytest
from bench.routing import answer_half, count_right, read_half
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx import api
from traindx.specialists.playbooks import NAMES
from traindx.specialists.routing import Route, route

DEBUGGING = "debugging-techniques"
MEMORY = "tensor-operations-and-memory"
DISTRIBUTED = "distributed-training-strategies"
PERFORMANCE = "performance-profiling"
PRECISION = "mixed-precision-and-optimization"
CHECKPOINTS = "checkpointing-and-reproducibility"
MODULES = "module-design-patterns"
AUTOGRAD = "custom-autograd-functions"
DATA = "data-pipeline-validation"

PRESSURES = {
    "deadline": "We have a deadline tonight.",
    "sunk cost": "I already tried everything and spent weeks on it.",
    "authority": "My tech lead says it is simple.",
    "exhaustion": "I am exhausted, it's the end of the day.",
    "confidence": "I'm 100% sure.",
    "brevity": "Just tell me what to do, no questions.",
}


@pytest.mark.parametrize(
    ("question", "specialists"),
    [
        ("CUDA out of memory after a few batches on one GPU", [MEMORY]),
        ("I want to train on 8 GPUs with DistributedDataParallel", [DISTRIBUTED]),
        ("Training is slow, 5 iterations per second. What holds it up?", [PERFORMANCE]),
        ("The loss is NaN from epoch 3 on", [DEBUGGING]),
        ("How do I resume exactly where I left off, with reproducible results?", [CHECKPOINTS]),
        ("Distributed training on 4 GPUs, OOM on each of them", [DISTRIBUTED, MEMORY]),
        ("Training is too slow, should I use mixed precision?", [PERFORMANCE, PRECISION]),
        ("NaN since AMP is on", [DEBUGGING, PRECISION]),
        ("mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)", [MODULES]),
        ("modified by an inplace operation", [AUTOGRAD]),
        ("DataLoader worker exited unexpectedly", [DATA]),
    ],
)
def test_a_symptom_finds_its_specialist(question: str, specialists: list[str]) -> None:
    assert list(route(question).specialists) == specialists


@pytest.mark.parametrize(
    "phrase",
    [
        "why is my loss diverging?",
        "model outputs are all the same token",
        "training failed at epoch 12",
        "gradients exploding",
        "why are gradients vanishing",
        "help diagnose mode collapse",
        "model not learning anything",
    ],
)
def test_the_phrases_that_wake_the_skill_lead_to_debugging(phrase: str) -> None:
    assert route(phrase).specialists[0] == DEBUGGING


@pytest.mark.parametrize(
    "question", ["Fix my PyTorch training", "debug my training run", "it crashed"]
)
def test_an_open_question_is_answered_with_exactly_one(question: str) -> None:
    answer = route(question)
    assert answer.decision == "ask"
    assert answer.specialists == ()
    assert answer.question is not None
    assert answer.question.count("?") == 1


def test_the_question_back_depends_on_what_is_still_open() -> None:
    asked = {route(q).question for q in ("fix my training", "the accuracy is bad", "it crashed")}
    assert len(asked) == 3


@pytest.mark.parametrize(
    "question",
    ["How long do I boil pasta?", "My SQL query is slow", "pip install torch fails", "hello", ""],
)
def test_what_is_not_about_training_is_declined_with_a_reason(question: str) -> None:
    answer = route(question)
    assert answer.decision == "refuse"
    assert answer.question is None
    assert answer.why.startswith("Not about training models")


def test_a_denied_symptom_does_not_count() -> None:
    answer = route("no longer OOM, but slow training")
    assert answer.specialists == (PERFORMANCE,)
    assert "runs out of memory" in answer.why.partition("Set aside")[2]
    assert route("the loss is not NaN, it never decreases").specialists == (DEBUGGING,)
    assert route("the OOM is fixed, but training crawls").specialists == (PERFORMANCE,)


def test_doing_without_something_is_what_is_wrong_when_asked_how() -> None:
    assert route(
        "how do I train with larger batches without running out of memory?"
    ).specialists == (MEMORY,)


def test_typing_errors_are_undone() -> None:
    assert route("traning is slow, low gpu utilzation").specialists == (PERFORMANCE,)
    assert route("distribted training, nccl timout").specialists == (DISTRIBUTED,)


def test_a_proposed_remedy_waits_and_is_named() -> None:
    answer = route("Training is slow, should I use mixed precision?")
    assert answer.overrides == (
        "the question proposes mixed precision; the bottleneck is not measured yet",
    )
    asked_for_itself = route("How do I use mixed precision?")
    assert asked_for_itself.specialists == (PRECISION,)
    assert asked_for_itself.overrides == ()


def test_what_is_in_use_is_not_called_a_proposal() -> None:
    assert route("I use AMP and the loss is NaN, what should I do").overrides == ()
    overrides = route("training crawls since I use DDP, we want fp16").overrides
    assert overrides == ("the question proposes 16-bit floats; the bottleneck is not measured yet",)


@pytest.mark.parametrize("pressure", PRESSURES.values(), ids=list(PRESSURES))
def test_pressure_changes_nothing_and_is_named(pressure: str) -> None:
    for labelled in read_half("develop"):
        calm = route(labelled.question)
        pressed = route(f"{pressure} {labelled.question}")
        if calm.decision != "refuse":
            assert (pressed.specialists, pressed.question) == (calm.specialists, calm.question)
            assert pressed.overrides


def test_chains_of_three() -> None:
    answer = route("OOM on every rank with DDP, someone suggested bf16")
    assert answer.specialists == (DISTRIBUTED, MEMORY, PRECISION)
    assert answer.first_steps[-1].startswith(f"then {PRECISION}")


def test_code_and_logs_are_not_read_as_words() -> None:
    post = (
        "My network learns nothing. This is the loop:\n\n"
        "```python\nfor x, y in loader:\n    torch.save(model.state_dict(), 'slow.pt')  # NaN, OOM\n```\n"
        "epoch 1 loss 0.69 time 12.0\nepoch 2 loss 0.69 time 12.1\n"
    )
    assert route(post).specialists == (DEBUGGING,)


def test_a_pasted_error_counts_by_its_cause() -> None:
    post = (
        "Any idea what happens here?\n\n"
        "Traceback (most recent call last):\n"
        '  File "train.py", line 88, in <module>\n    loss.backward()\n'
        "RuntimeError: Trying to backward through the graph a second time (or directly access saved "
        "tensors after they have already been freed).\n"
    )
    answer = api.route(post)
    assert answer.specialists[0] == AUTOGRAD
    assert answer.causes
    assert any("traindx explain" in step for step in answer.first_steps)


def test_the_answer_is_plain_data() -> None:
    told = json.loads(json.dumps(route("loss is nan with amp, no OOM").to_dict()))
    assert set(told) >= {
        "specialists",
        "why",
        "overrides",
        "question",
        "first_steps",
        "artifacts_wanted",
    }
    assert {"concept": "out-of-memory", "kind": "symptom", "words": "OOM", "denied": True} in told[
        "heard"
    ]


def is_well_formed(answer: Route) -> bool:
    return (
        bool(answer.why)
        and set(answer.specialists) <= set(NAMES)
        and len(set(answer.specialists)) == len(answer.specialists)
        and not (answer.specialists and answer.question)
    )


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400))
def test_any_text_gets_a_well_formed_answer(text: str) -> None:
    assert is_well_formed(route(text))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(sorted({w for q in read_half("develop") for w in q.question.split()})),
        max_size=60,
    )
)
def test_any_words_of_the_trade_get_the_same_answer_twice(words: list[str]) -> None:
    text = " ".join(words)
    assert is_well_formed(route(text))
    assert route(text) == route(text)


def test_the_labelled_questions_are_many_and_the_halves_share_none() -> None:
    develop, report = read_half("develop"), read_half("report")
    assert len(develop) + len(report) >= 250
    assert not {q.question for q in develop} & {q.question for q in report}
    for labelled in develop + report:
        assert labelled.decisions
        assert bool(labelled.chains) == ("route" in labelled.decisions)
        assert all(set(chain) <= set(NAMES) for chain in labelled.chains)


def test_no_fewer_develop_questions_are_answered_rightly_than_before() -> None:
    right = count_right(answer_half("develop"))
    assert right["decision"] >= 223
    assert right["first"] >= 223
    assert right["chain"] >= 222
