import torch.nn as nn


class BirdNet(nn.Module):
    """Input: log-mel spectrogram (B, 1, mels, frames)."""

    def __init__(self, n_species, frames=128):
        super().__init__()

        def stage(cin, cout):
            return nn.Sequential(
                nn.Conv2d(cin, cout, 3, padding=1),
                nn.BatchNorm2d(cout),
                nn.ReLU(),
                nn.MaxPool2d(2),
            )

        self.features = nn.Sequential(stage(1, 8), stage(8, 16), stage(16, 32), stage(32, 32))
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(32 * 4 * (frames // 16), 64),
            nn.ReLU(),
            nn.Dropout(0.4),
            nn.Linear(64, n_species),
        )

    def forward(self, spec):
        return self.classifier(self.features(spec))
