from torch import nn


class Encoder(nn.Module):
    def __init__(self, dim=32, proj_dim=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 16, dim),
        )
        self.projector = nn.Sequential(
            nn.ReLU(), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, proj_dim)
        )

    def forward(self, x):
        h = self.backbone(x)
        return h, self.projector(h)
