import logging

import torch

from datahub import DataHub
from engine import Engine, WaferCNN


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    torch.manual_seed(0)
    hub = DataHub(batch_size=50)
    engine = Engine(WaferCNN(), hub)
    engine.run(epochs=25)


if __name__ == "__main__":
    main()
