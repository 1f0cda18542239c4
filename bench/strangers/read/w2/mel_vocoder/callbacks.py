from torch import nn


class Callback:
    priority = 50

    def before_step(self, state):
        pass

    def after_step(self, state):
        pass


class UnscaleGradients(Callback):
    priority = 60

    def before_step(self, state):
        state.scaler.unscale_(state.optimizer)


class ClipGradients(Callback):
    priority = 40

    def __init__(self, max_norm):
        self.max_norm = max_norm

    def before_step(self, state):
        nn.utils.clip_grad_norm_(state.model.parameters(), self.max_norm)


class LossMeter(Callback):
    def __init__(self, every):
        self.every, self.buffer = every, []

    def after_step(self, state):
        self.buffer.append(state.loss)
        if len(self.buffer) == self.every:
            print(f"step {state.step:4d} l1 {sum(self.buffer) / self.every:.4f} scale {state.scaler.get_scale():g}")
            self.buffer.clear()


class CallbackList:
    def __init__(self, callbacks):
        self.callbacks = sorted(callbacks, key=lambda c: c.priority)

    def fire(self, event, state):
        for cb in self.callbacks:
            getattr(cb, event)(state)
