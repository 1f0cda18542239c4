"""Segmentation scores from an accumulated confusion matrix."""
import torch


class SegScore:
    def __init__(self, classes: int, ignore: int = 255):
        self.classes, self.ignore = classes, ignore
        self.reset()

    def reset(self):
        self.cm = torch.zeros(self.classes, self.classes, dtype=torch.long)

    @torch.no_grad()
    def update(self, logits, target):
        pred = logits.argmax(1).flatten()
        target = target.flatten()
        keep = target != self.ignore
        idx = target[keep] * self.classes + pred[keep]
        self.cm += torch.bincount(idx, minlength=self.classes ** 2).view(self.classes, self.classes).cpu()

    def pixel_accuracy(self):
        return (self.cm.diag().sum() / self.cm.sum().clamp_min(1)).item()

    def iou(self):
        cm = self.cm.double()
        hit = cm.diag()
        labelled, predicted = cm.sum(1), cm.sum(0)
        present = labelled > 0
        return (hit / (labelled + predicted).clamp_min(1))[present]

    def mean_iou(self):
        return self.iou().mean().item()
