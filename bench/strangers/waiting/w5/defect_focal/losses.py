import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    def __init__(self, class_counts, gamma=2.0, label_smoothing=0.0):
        super().__init__()
        freq = torch.as_tensor(class_counts, dtype=torch.float32)
        self.alpha = freq.sum() / (len(freq) * freq)
        self.gamma = gamma
        self.label_smoothing = label_smoothing

    def forward(self, logits, target):
        ce = F.cross_entropy(logits, target, weight=self.alpha, reduction="none",
                             label_smoothing=self.label_smoothing)
        pt = torch.softmax(logits.detach(), dim=1).gather(1, target[:, None]).squeeze(1)
        return ((1 - pt) ** self.gamma * ce).mean()
