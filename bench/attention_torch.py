#!/usr/bin/env python3
"""Scaled dot-product attention in PyTorch on a ragged batch: live tokens a second, as attention_bench counts them.

    attention_torch.py LENGTHS --heads N --width N --pass forward|both --way padded|padded_additive|nested
                       [--threads N] [--seconds S]

LENGTHS is a file with the length of each sentence. Queries, keys and values are [batch, heads, length, width] views of
[batch, length, heads x width], as projections leave them; making them is not timed, nor are masks.

    padded           scaled_dot_product_attention with a mask of booleans; without one where no sentence is shorter
    padded_additive  the same with a mask of numbers, 0 and -infinity
    nested           on nested tensors (torch.jagged), which hold no padding
"""
import argparse
import pathlib
import time

import torch
import torch.nn.functional as F


def padded(lengths, heads, width, grad, additive):
    """A function that attends, and its three leaves."""
    longest = max(lengths)
    leaves = [torch.randn(len(lengths), longest, heads * width, requires_grad=grad) for _ in range(3)]
    views = [leaf.view(len(lengths), longest, heads, width).transpose(1, 2) for leaf in leaves]
    live = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    mask = None
    if not bool(live.all()):
        mask = live[:, None, None]
        if additive:
            mask = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    upstream = torch.randn(len(lengths), heads, longest, width) * live[:, None, :, None]
    return lambda: F.scaled_dot_product_attention(*views, attn_mask=mask), leaves, upstream


def nested(lengths, heads, width, grad, _):
    leaves = [torch.nested.nested_tensor([torch.randn(length, heads, width) for length in lengths], layout=torch.jagged,
                                         requires_grad=grad) for _ in range(3)]
    # One table of offsets, or PyTorch takes the batches for ragged in different ways.
    leaves[1:] = [torch.nested.nested_tensor_from_jagged(leaf.values().detach(), leaves[0].offsets())
                  .requires_grad_(grad) for leaf in leaves[1:]]
    views = [leaf.transpose(1, 2) for leaf in leaves]
    with torch.no_grad():
        upstream = torch.ones_like(F.scaled_dot_product_attention(*views))
    return lambda: F.scaled_dot_product_attention(*views), leaves, upstream


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lengths", type=pathlib.Path)
    parser.add_argument("--heads", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--pass", dest="part", choices=("forward", "both"), required=True)
    parser.add_argument("--way", choices=("padded", "padded_additive", "nested"), required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    lengths = [int(word) for word in arguments.lengths.read_text().split()]
    both = arguments.part == "both"
    make = nested if arguments.way == "nested" else padded
    attend, leaves, upstream = make(lengths, arguments.heads, arguments.width, both, arguments.way == "padded_additive")

    def run():
        if both:
            torch.autograd.grad(attend(), leaves, upstream)
        else:
            with torch.no_grad():
                attend()

    for _ in range(3):
        run()
    calls, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < arguments.seconds or calls < 2:
        run()
        calls += 1
    print(f"{calls * sum(lengths) / spent:.0f}")


main()
