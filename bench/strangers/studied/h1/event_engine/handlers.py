import torch

from engine import Event


def attach_grad_clipping(engine, max_norm):
    @engine.on(Event.BATCH_DONE)
    def clip(eng):
        torch.nn.utils.clip_grad_norm_(eng.model.parameters(), max_norm)


def attach_loss_average(engine):
    state = {"sum": 0.0, "n": 0}

    @engine.on(Event.EPOCH_START)
    def reset(eng):
        state.update(sum=0.0, n=0)

    @engine.on(Event.BATCH_DONE)
    def accumulate(eng):
        state["sum"] += eng.last_loss
        state["n"] += 1

    @engine.on(Event.EPOCH_DONE)
    def publish(eng):
        eng.metrics["loss"] = state["sum"] / state["n"]


def attach_validation(engine, x, y):
    @engine.on(Event.EPOCH_DONE)
    def validate(eng):
        eng.model.eval()
        with torch.no_grad():
            eng.metrics["mae"] = (eng.model(x) - y).abs().mean().item()


def attach_printer(engine):
    @engine.on(Event.EPOCH_DONE)
    def show(eng):
        print(f"epoch {eng.epoch}: " + ", ".join(f"{k}={v:.4f}" for k, v in eng.metrics.items()))
