import torch


class GradientBalance:
    """Logs how strongly each objective pulls on the shared weights."""

    def __init__(self, shared_params, every=10):
        self.shared = [p for p in shared_params if p.requires_grad]
        self.every = every
        self.rows = []

    def _norm(self, loss):
        grads = torch.autograd.grad(loss, self.shared, allow_unused=True)
        return sum(g.pow(2).sum() for g in grads if g is not None).sqrt().item()

    def maybe_log(self, step, objectives):
        if step == 0 or step % self.every:
            return
        row = {"step": step}
        row.update({name: self._norm(loss) for name, loss in objectives.items()})
        self.rows.append(row)
        print("   pull:", {k: round(v, 4) for k, v in row.items()})
