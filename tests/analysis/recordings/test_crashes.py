"""Errors with the tensors at hand when they were raised."""

from traindx.analysis.recordings.crashes import (
    are_tokens,
    causes_of_labels,
    cite_modules_and_tensors,
    failed_labels,
    failed_layer,
    failed_lookup,
    last_memory,
    name_in_own_code,
    reason_of_labels,
    signal_of,
)
from traindx.model.findings import Strength
from traindx.model.recording import Caught, Ending, Process, Recording, Sample, Summary


def ids(high: float, name: str = "input") -> Summary:
    return Summary(name, (8, 12), "int64", "cpu", 0.0, high)


def lookup(high: float) -> Caught:
    table = Summary("weight", (50, 16), "float32")
    frames = (("embedding, line 2", ids(high)), ("embedding, line 2", table))
    return Caught(1, "IndexError", tensors=(*frames, ("forward, line 20", ids(high, "x"))))


def test_sequences_of_ids_are_tokens_and_positions_are_not():
    def given(*whole: int) -> Caught:
        return Caught(1, "IndexError", modules=(("", "Net", (whole,)), ("e", "Embedding", ())))

    assert are_tokens(given(8, 12), ids(50.0))
    assert not are_tokens(given(8, 12), ids(11.0))
    assert not are_tokens(given(8, 9), ids(50.0))
    assert not are_tokens(Caught(1, "IndexError"), ids(50.0))


def test_an_index_beyond_its_table():
    found = failed_lookup(lookup(50.0))
    assert found is not None and found[1] == 50
    assert failed_lookup(lookup(49.0)) is None
    assert name_in_own_code(lookup(50.0), found[0]) == "`x` (forward, line 20)"


def test_labels_beyond_the_classes():
    labels = Summary("target", (32,), "int64", "cpu", 1.0, 10.0)
    logits = Summary("input", (32, 10), "float32")
    frame = "cross_entropy, line 9"
    found = failed_labels(Caught(1, tensors=((frame, logits), (frame, labels))))
    assert found == (labels, logits, 10)
    assert "start at 1" in reason_of_labels(labels, 10)
    assert reason_of_labels(labels, 5) == ""


def test_the_way_to_a_failed_layer_is_cited():
    caught = Caught(1, modules=(("fc1", "Linear", ((4, 576),)),), tensors=(("forward", ids(1.0)),))
    assert failed_layer(caught) == "fc1 (Linear)"
    said = [e.says for e in cite_modules_and_tensors(Process(), caught, 3.0)]
    assert said[0] == "fc1 gets (4, 576)" and said[1].endswith("in forward")


def test_a_shell_reports_a_signal_as_its_exit_code():
    def ended(**fields: int) -> Recording:
        return Recording((), Ending(**fields))

    assert signal_of(ended(exit_code=137)) == 9
    assert signal_of(ended(signal=15)) == 15
    assert signal_of(ended(exit_code=-11)) == 11
    assert signal_of(ended(exit_code=3)) is None


def test_the_last_memory_of_every_process():
    process = Process(samples=(Sample(1, 5, rss_bytes=1e9), Sample(2, 9, rss_bytes=3e9)))
    (cited,) = last_memory(Recording((process,)))
    assert cited.says.endswith("at step 9")


def test_labels_far_beyond_speak_for_too_small_an_output():
    far = Summary("target", (32,), "int64", "cpu", 0.0, 99.0)
    assert causes_of_labels(far, 10) == {"output-size-mismatch": Strength.MODERATE}
