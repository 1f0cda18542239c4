import torch
import torch.nn as nn

from geometry import sixd_to_matrix


class PoseNet(nn.Module):
    def __init__(self, n_landmarks=68, width=128):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Flatten(),
            nn.Linear(n_landmarks * 2, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
        )
        self.head = nn.Linear(width, 6)
        # the regressor starts from the frontal pose, as in the paper (supp. sec. B)
        with torch.no_grad():
            self.head.weight.zero_()
            self.head.bias.copy_(torch.tensor([1., 0., 0., 0., 1., 0.]))

    def forward(self, landmarks):
        return sixd_to_matrix(self.head(self.backbone(landmarks)))
