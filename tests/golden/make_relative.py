"""Reference numbers for relative positions: buckets by T5 of Hugging Face transformers, attention with a bias by PyTorch
(float64), forward and backward.
usage: make_relative.py OUT_DIR          needs: torch, transformers, safetensors
Writes OUT_DIR/relative_buckets.safetensors and OUT_DIR/relative_{both,causal,cached_step}.safetensors: inputs, the table
of the bias [buckets, heads], outputs, `up.<output>` the upstream gradients, `grad.<input>` the expected ones."""
import json
import math
import sys

import torch
from safetensors.torch import save_file
from transformers.models.t5.modeling_t5 import T5Attention

OUT = sys.argv[1]
torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(20261201)


def random(*shape):
    return torch.randn(*shape, generator=generator)


def write(name, tensors, **settings):
    tensors = {key: value.detach().contiguous() for key, value in tensors.items()}
    save_file(tensors, f"{OUT}/{name}.safetensors", {key: json.dumps(value) for key, value in settings.items()})


def bucket(distance, causal, count, max_distance):
    return T5Attention._relative_position_bucket(
        distance, bidirectional=not causal, num_buckets=count, max_distance=max_distance)


# Every distance around the borders, for T5's own numbers and others.
distances = torch.cat([torch.arange(-700, 701), torch.tensor([-100000, -5000, 5000, 100000])])
buckets = {}
for count, max_distance in [(32, 128), (32, 64), (16, 100), (4, 3), (8, 20), (64, 500), (128, 600), (6, 1000)]:
    for causal in (False, True):
        buckets[f"{'causal' if causal else 'both'}_{count}_{max_distance}"] = bucket(
            distances, causal, count, max_distance).to(torch.int32)
write("relative_buckets", {"distances": distances.to(torch.int32), **buckets})


def attention(q, k, v, table, causal, count, max_distance):
    """q [batch, heads, n_q, d_k] stands at the last n_q of the n_k positions of k and v."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    position = torch.arange(n_k)
    distance = position[None, :] - position[n_k - n_q:, None]
    bias = table[bucket(distance, causal, count, max_distance)].permute(2, 0, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
    if causal:
        scores = scores.masked_fill(distance > 0, -math.inf)
    weights = torch.softmax(scores, -1)
    return {"scores": scores, "weights": weights, "out": weights @ v}


def case(name, n_q, n_k, causal, count, max_distance):
    inputs = {"q": random(2, 3, n_q, 8), "k": random(2, 3, n_k, 8), "v": random(2, 3, n_k, 5), "table": random(count, 3)}
    leaves = {key: value.clone().requires_grad_(True) for key, value in inputs.items()}
    outputs = attention(**leaves, causal=causal, count=count, max_distance=max_distance)
    up = {key: random(*outputs[key].shape) for key in ("weights", "out")}
    gradients = torch.autograd.grad([outputs[key] for key in up], list(leaves.values()), list(up.values()))
    write(name, {**inputs, **outputs, **{f"up.{key}": value for key, value in up.items()},
                 **{f"grad.{key}": value for key, value in zip(leaves, gradients)}},
          causal=causal, buckets=count, max_distance=max_distance)


# Long enough for shared buckets, and for the last one.
case("relative_both", 14, 14, False, 12, 9)
case("relative_causal", 14, 14, True, 12, 9)
case("relative_cached_step", 1, 14, True, 12, 9)
