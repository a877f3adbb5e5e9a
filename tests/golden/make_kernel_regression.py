#!/usr/bin/env python3
"""Writes kernel_regression_bandwidth.safetensors: kernel regression with a bandwidth that is not 1, by PyTorch in float64.

    python3 -m venv venv && venv/bin/pip install torch safetensors
    venv/bin/python make_kernel_regression.py

In the manner of the other files here: inputs and outputs by name, `up.<output>` the upstream gradients,
`grad.<input>` what autograd makes of them. tests/attention compares every number with ours.
"""
import pathlib

import torch
from safetensors.torch import save_file


def kernel_regression(x, xi, y, b):
    scores = -((x[:, None] - xi[None]) ** 2).sum(-1) / (2 * b**2)
    weights = torch.softmax(scores, -1)
    return {"scores": scores, "weights": weights, "out": weights @ y}


def main():
    torch.set_default_dtype(torch.float64)
    generator = torch.Generator().manual_seed(20261130)

    def random(*shape):
        return torch.randn(*shape, generator=generator)

    inputs = {"x": random(6, 3), "xi": random(9, 3), "y": random(9, 2), "b": torch.tensor([0.6])}
    leaves = {name: value.clone().requires_grad_(True) for name, value in inputs.items()}
    outputs = kernel_regression(**leaves)
    up = {name: random(*outputs[name].shape) for name in ("weights", "out")}
    gradients = torch.autograd.grad([outputs[name] for name in up], list(leaves.values()), list(up.values()))
    tensors = inputs | {name: value.detach() for name, value in outputs.items()}
    tensors |= {f"up.{name}": value for name, value in up.items()}
    tensors |= {f"grad.{name}": value for name, value in zip(leaves, gradients)}
    path = pathlib.Path(__file__).with_name("kernel_regression_bandwidth.safetensors")
    save_file({name: value.contiguous() for name, value in tensors.items()}, path)


if __name__ == "__main__":
    main()
