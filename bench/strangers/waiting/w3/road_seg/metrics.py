import torch


class ConfusionMatrix:
    def __init__(self, n_classes, ignore=255):
        self.n, self.ignore = n_classes, ignore
        self.mat = torch.zeros(n_classes, n_classes, dtype=torch.long)

    def update(self, target, pred):
        keep = target != self.ignore
        idx = self.n * target[keep] + pred[keep]
        self.mat += torch.bincount(idx, minlength=self.n ** 2).reshape(self.n, self.n)

    def reset(self):
        self.mat.zero_()

    def iou(self):
        m = self.mat.float()
        return m.diag() / (m.sum(0) + m.sum(1) - m.diag()).clamp(min=1)

    def pixel_acc(self):
        m = self.mat.float()
        return (m.diag().sum() / m.sum()).item()
