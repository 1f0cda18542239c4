"""Memory and graphs that grow from step to step."""

from math import nan

from traindx.analysis.recordings.memory_growth import (
    contains_earlier_graphs,
    counted_graphs,
    growing_memory,
    grows_in_a_line,
    has_growing_graph,
    kept_graphs,
    memory_of,
    whole_epochs,
)
from traindx.examples import sampled
from traindx.model.recording import Epoch, Process, Sample


def graphs(*nodes: int) -> list[Sample]:
    return list(sampled(len(nodes), step=lambda i: i, graph_nodes=lambda i: nodes[i]).samples)


def test_a_chain_of_graphs_grows_by_a_step_per_step():
    assert contains_earlier_graphs(graphs(20, 40, 60, 80))
    assert not contains_earlier_graphs(graphs(100, 140, 90, 180))
    assert not contains_earlier_graphs(graphs(100, 102, 104, 106))


def test_what_follows_the_end_of_counting_is_left_out():
    assert [s.graph_nodes for s in counted_graphs(graphs(5, 9, 20, 20))] == [5, 9, 20]
    assert len(counted_graphs(graphs(5, 20, 9))) == 3
    assert counted_graphs([]) == []


def test_memory_of_all_samples_lies_on_a_line():
    line = sampled(10, step=lambda i: i, rss_bytes=lambda i: 1e9 + 1e7 * i)
    bent = sampled(10, step=lambda i: i, rss_bytes=lambda i: 1e9 * (2 - 0.5**i))
    assert grows_in_a_line(line, "rss_bytes", 6)
    assert not grows_in_a_line(line, "rss_bytes", 2)
    assert not grows_in_a_line(bent, "rss_bytes", 6)
    assert memory_of(Sample(1, 0, rss_bytes=nan), "rss_bytes") == 0.0


def test_a_growing_graph_rises_in_every_sample():
    assert has_growing_graph(sampled(8, graph_nodes=lambda i: 10 + 10 * i))
    assert not has_growing_graph(sampled(8, graph_nodes=12))


def test_memory_that_grows_after_the_beginning():
    gigabyte = float(1 << 30)
    rising = sampled(30, step=lambda i: 10 * i, rss_bytes=lambda i: gigabyte * (1 + 0.02 * i))
    samples = growing_memory(rising, "rss_bytes")
    assert samples and samples[0].step >= 58
    assert growing_memory(sampled(30, step=lambda i: i, rss_bytes=gigabyte), "rss_bytes") == []


def test_only_whole_epochs_of_training_count():
    epochs = (Epoch(1, 0, 9, 9, trained=9), Epoch(2, 1, 3, 9), Epoch(3, 0, 4, 13, trained=4))
    cut = (*epochs[:2], Epoch(3, 0, 4, 13, trained=4, is_whole=False))
    assert whole_epochs(Process(epochs=epochs)) == [9.0, 13.0]
    assert whole_epochs(Process(epochs=cut)) == [9.0]


def test_graphs_of_earlier_steps_that_are_alive():
    def process(*kept: int) -> Process:
        samples = (
            Sample(i, i, kept_graphs=n, past_graphs=i, graph_nodes=9) for i, n in enumerate(kept)
        )
        return Process(samples=tuple(samples))

    assert [s.step for s in kept_graphs(process(0, 1, 2, 3, 4, 0))] == [2, 3, 4]
    assert not kept_graphs(process(0, 1, 1, 1, 1, 1))
    assert not kept_graphs(process(0, 0, 2, 3, 0, 0))
