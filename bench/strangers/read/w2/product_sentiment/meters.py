class Accuracy:
    def __init__(self):
        self.hits = 0
        self.count = 0

    def update(self, logits, labels):
        self.hits += (logits.argmax(-1) == labels).sum().item()
        self.count += labels.numel()

    def reset(self):
        self.hits = 0
        self.total = 0

    def value(self):
        return self.hits / max(1, self.count)


class Mean:
    def __init__(self):
        self.reset()

    def update(self, x, n=1):
        self.sum += x * n
        self.n += n

    def reset(self):
        self.sum, self.n = 0.0, 0

    def value(self):
        return self.sum / max(1, self.n)
