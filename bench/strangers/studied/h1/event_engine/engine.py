from collections import defaultdict
from enum import Enum, auto


class Event(Enum):
    EPOCH_START = auto()
    BATCH_START = auto()
    BACKWARD_DONE = auto()
    BATCH_DONE = auto()
    EPOCH_DONE = auto()


class Engine:
    def __init__(self, model, optimizer, loss_fn):
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.handlers = defaultdict(list)
        self.epoch = 0
        self.last_loss = None
        self.metrics = {}

    def on(self, event):
        def register(fn):
            self.handlers[event].append(fn)
            return fn
        return register

    def fire(self, event):
        for fn in self.handlers[event]:
            fn(self)

    def process(self, batch):
        self.fire(Event.BATCH_START)
        x, y = batch
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.fire(Event.BACKWARD_DONE)
        self.optimizer.step()
        self.last_loss = loss.item()
        self.fire(Event.BATCH_DONE)

    def run(self, loader, epochs):
        for self.epoch in range(1, epochs + 1):
            self.model.train()
            self.fire(Event.EPOCH_START)
            for batch in loader:
                self.process(batch)
            self.fire(Event.EPOCH_DONE)
