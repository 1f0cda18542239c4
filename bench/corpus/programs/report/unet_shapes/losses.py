import torch
import torch.nn as nn
import torch.nn.functional as F


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        prob = torch.sigmoid(logits).flatten(1)
        target = target.flatten(1)
        inter = (prob * target).sum(dim=1)
        total = prob.sum(dim=1) + target.sum(dim=1)
        dice = (2 * inter + self.smooth) / (total + self.smooth)
        return 1 - dice.mean()


class DiceBCELoss(nn.Module):
    def __init__(self, bce_weight=0.5, dice_weight=0.5):
        super().__init__()
        self.bce_weight = bce_weight
        self.dice_weight = dice_weight
        self.dice = DiceLoss()

    def forward(self, logits, target):
        bce = F.binary_cross_entropy_with_logits(logits, target)
        return self.bce_weight * bce + self.dice_weight * self.dice(logits, target)


@torch.no_grad()
def iou_per_image(logits, target, threshold=0.5, eps=1e-6):
    pred = torch.sigmoid(logits) > threshold
    target = target > 0.5
    inter = (pred & target).flatten(1).sum(1).float()
    union = (pred | target).flatten(1).sum(1).float()
    return (inter + eps) / (union + eps)
