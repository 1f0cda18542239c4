from torch import nn


def conv_block(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
    )


class SmallConvNet(nn.Module):
    def __init__(self, num_classes=10, width=16, dropout=0.1):
        super().__init__()
        self.features = nn.Sequential(
            conv_block(1, width),
            nn.MaxPool2d(2),
            conv_block(width, 2 * width),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * width * 2 * 2, num_classes)

    def forward(self, x):
        x = self.features(x)
        x = x.flatten(1)
        return self.classifier(self.dropout(x))
