import torch


class SegmentationScore:
    """Accumulates per-class pixel counts over a data set; `compute` gives pixel accuracy and mean IoU."""

    def __init__(self, n_classes):
        self.n = n_classes
        self.reset()

    def reset(self):
        self.inter = torch.zeros(self.n)
        self.area_pred = torch.zeros(self.n)
        self.area_true = torch.zeros(self.n)

    def update(self, pred, true):
        hit = pred[pred == true]
        self.inter += torch.bincount(hit.flatten(), minlength=self.n)
        self.area_pred += torch.bincount(pred.flatten(), minlength=self.n)
        self.area_true += torch.bincount(true.flatten(), minlength=self.n)

    def compute(self):
        union = self.area_pred + self.area_true
        iou = self.inter / union.clamp(min=1)
        present = self.area_true > 0
        return {
            "pixel_acc": (self.inter.sum() / self.area_true.sum()).item(),
            "miou": iou[present].mean().item(),
        }
