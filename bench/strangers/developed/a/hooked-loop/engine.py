"""Kleine Ereignis-Engine: die Schleife selbst bleibt fest, alles andere hängt sich an Ereignisse."""
from collections import defaultdict
from types import SimpleNamespace

EVENTS = ("epoch_start", "batch_start", "after_loss", "after_backward", "after_step", "epoch_end")


class Engine:
    def __init__(self, net, optim, compute_loss):
        self.state = SimpleNamespace(net=net, optim=optim, epoch=0, iteration=0, loss=None, logs={})
        self.compute_loss = compute_loss
        self._handlers = defaultdict(list)

    def on(self, event, every=1):
        if event not in EVENTS:
            raise KeyError(event)

        def register(fn):
            self._handlers[event].append((every, fn))
            return fn

        return register

    def fire(self, event):
        for every, fn in self._handlers[event]:
            if self.state.iteration % every == 0:
                fn(self.state)

    def run(self, loader, epochs):
        s = self.state
        for s.epoch in range(1, epochs + 1):
            s.net.train()
            self.fire("epoch_start")
            for batch in loader:
                s.iteration += 1
                self.fire("batch_start")
                s.loss = self.compute_loss(s.net, batch)
                self.fire("after_loss")
                s.loss.backward()
                self.fire("after_backward")
                s.optim.step()
                self.fire("after_step")
            self.fire("epoch_end")
        return s
