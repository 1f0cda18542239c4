from torch import nn


class LeafNet(nn.Module):
    def __init__(self, width, size, n_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(width * (size // 4) ** 2, 64), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(64, n_classes))

    def forward(self, x):
        f = self.features(x)
        return self.classifier(f.view(f.size(0), -1))
