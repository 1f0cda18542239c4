class LossBalancer:
    """Brings the task losses to a common magnitude with a moving average of each one."""

    def __init__(self, tasks, momentum=0.9, eps=1e-8):
        self.momentum = momentum
        self.eps = eps
        self.avg = {t: None for t in tasks}

    def __call__(self, losses):
        total = 0.0
        for name, loss in losses.items():
            prev = self.avg[name]
            if prev is None:
                self.avg[name] = loss.detach()
            else:
                self.avg[name] = self.momentum * prev + (1 - self.momentum) * loss
            total = total + loss / (self.avg[name] + self.eps)
        return total
