"""The loaders that a recorded run trained from."""

from dataclasses import replace

from traindx.analysis.recordings.trained_loaders import sequential_loader
from traindx.model.recording import Epoch, Loader, Process


def test_one_loader_that_reads_in_order():
    loader = Loader(1, 0, batches=40, sampler="SequentialSampler")
    process = Process(loaders=(loader,), epochs=(Epoch(9, 0, 40, trained=40),))
    assert sequential_loader(process) is loader
    shuffled = replace(loader, sampler="RandomSampler", is_shuffled=True)
    assert sequential_loader(replace(process, loaders=(shuffled,))) is None
    assert sequential_loader(replace(process, epochs=(Epoch(9, 0, 40),))) is None
