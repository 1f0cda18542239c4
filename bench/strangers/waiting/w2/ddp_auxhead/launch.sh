#!/bin/bash
torchrun --standalone --nproc_per_node=4 train_ddp.py --data /data/cifar100 --epochs 100
