"""TrainCheck instruments a script that names its model; it takes its arguments from outside."""

import os
import sys

import torch

sys.path.insert(0, os.environ["OVERHEAD_ROOT"])
training = __import__("bench.overhead_programs.training", fromlist=["train"])

options = training.read(os.environ["OVERHEAD_ARGUMENTS"].split())
job = training.build(options)
model = job.model
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # it has to stand in the script
job.model, job.optimizer = model, optimizer
training.train(job, job.step, options)
