from torch import nn


class Backbone(nn.Module):
    def __init__(self, bands=4, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(bands, width, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.act = nn.ReLU()
        self.out_dim = 2 * width

    def forward(self, x):
        x = self.act(self.bn1(self.conv1(x)))
        return self.act(self.bn2(self.conv2(x))).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.fc = nn.Linear(backbone.out_dim, classes)

    def forward(self, x):
        return self.fc(self.backbone(x))
