#!/usr/bin/env python3
"""Writes the golden numbers of the recurrent layers: what PyTorch says, in float64.

    python3 -m venv venv && venv/bin/pip install torch safetensors
    venv/bin/python make_recurrent.py [OUTPUT FOLDER]

A file holds inputs and parameters by name, results by name, `up.<result>` the upstream gradients,
`grad.<input>` the expected gradients, and settings as JSON in its metadata, as the files made elsewhere do.

    gru_cell                torch.nn.GRUCell: the reset gate after the product
    gru_cell_before         the reset gate before the product (Cho et al. 2014)
    gru_cell_norm           layer normalisation of both sums, those of r and z together, those of n apart
    gru_cell_before_norm    both
    maxout                  the larger of two neighbours
    conditional_gru         a decoder step: GRU 1 on the embedding, additive attention whose query is the
                            state after it, GRU 2 on the context; sources of 5, 3 and 1 tokens
"""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
GENERATOR = torch.Generator().manual_seed(20261130)
EPSILON = 1e-5
torch.set_default_dtype(torch.float64)


def random(*shape, scale=1.0):
    return torch.randn(*shape, generator=GENERATOR) * scale


def write(name, tensors, **settings):
    tensors = {key: value.detach().contiguous() for key, value in tensors.items()}
    metadata = {key: json.dumps(value) for key, value in settings.items()}
    save_file(tensors, OUT / f"{name}.safetensors", metadata)


def with_gradients(function, inputs, constants=()):
    """Inputs, results, upstream gradients of the results, gradients of the inputs that are no constants."""
    leaves = {k: v.clone().requires_grad_(k not in constants) for k, v in inputs.items()}
    results = function(**leaves)
    upstream = {k: random(*v.shape) for k, v in results.items()}
    wanted = {k: v for k, v in leaves.items() if v.requires_grad}
    gradients = torch.autograd.grad(list(results.values()), list(wanted.values()), list(upstream.values()))
    return {
        **inputs,
        **results,
        **{f"up.{k}": v for k, v in upstream.items()},
        **{f"grad.{k}": v for k, v in zip(wanted, gradients)},
    }


def cell_parameters(d_in, d_h, norm=False, prefix=""):
    rows = 3 * d_h
    shapes = {"weight_ih": (rows, d_in), "weight_hh": (rows, d_h), "bias_ih": (rows,), "bias_hh": (rows,)}
    parameters = {prefix + name: random(*shape, scale=0.5) for name, shape in shapes.items()}
    for side in ("ih", "hh") if norm else ():
        parameters[f"{prefix}norm_{side}.weight"] = 1 + random(rows, scale=0.3)
        parameters[f"{prefix}norm_{side}.bias"] = random(rows, scale=0.3)
    return parameters


def cell(x, h, p, before=False):
    """One transition, from the formulas."""
    d = h.shape[1]

    def sums(v, side, begin, end):
        s = v @ p[f"weight_{side}"][begin:end].T + p[f"bias_{side}"][begin:end]
        if f"norm_{side}.weight" not in p:
            return s
        gain, bias = p[f"norm_{side}.weight"][begin:end], p[f"norm_{side}.bias"][begin:end]
        return F.layer_norm(s, (end - begin,), gain, bias, EPSILON)

    r, z = torch.sigmoid(sums(x, "ih", 0, 2 * d) + sums(h, "hh", 0, 2 * d)).chunk(2, -1)
    of_state = sums(r * h, "hh", 2 * d, 3 * d) if before else r * sums(h, "hh", 2 * d, 3 * d)
    n = torch.tanh(sums(x, "ih", 2 * d, 3 * d) + of_state)
    return (1 - z) * n + z * h


def gru_cell():
    d_in, d_h, rows = 7, 6, 5
    inputs = {"x": random(rows, d_in), "h": random(rows, d_h), **cell_parameters(d_in, d_h)}

    def pytorch(x, h, **p):
        unit = torch.nn.GRUCell(d_in, d_h)
        return {"out": torch.func.functional_call(unit, p, (x, h))}

    write("gru_cell", with_gradients(pytorch, inputs), reset="after", hidden=d_h)
    difference = pytorch(**inputs)["out"] - cell(inputs["x"], inputs["h"], inputs)
    assert difference.abs().max() < 1e-14, "the formulas are not those of PyTorch"
    for name, before, norm in (("before", True, False), ("norm", False, True), ("before_norm", True, True)):
        inputs = {"x": random(rows, d_in), "h": random(rows, d_h), **cell_parameters(d_in, d_h, norm)}
        results = with_gradients(lambda x, h, **p: {"out": cell(x, h, p, before)}, inputs)
        write(f"gru_cell_{name}", results, reset="before" if before else "after", layer_norm=norm, hidden=d_h,
              epsilon=EPSILON)


def maxout():
    larger = lambda x: {"out": x.view(*x.shape[:-1], -1, 2).max(-1).values}
    write("maxout", with_gradients(larger, {"x": random(5, 38)}))


def conditional_gru():
    """Also the gradients in between: of s'_i, through the attention alone and in all, and of the context."""
    d_e, d_s, d_h, d_a = 4, 6, 8, 7
    lengths = torch.tensor([5, 3, 1])
    inputs = {
        "embedding": random(3, d_e),
        "s_prev": random(3, d_s),
        "h": random(3, 5, d_h),
        "length": lengths,
        **cell_parameters(d_e, d_s, prefix="gru_1."),
        "W_a": random(d_a, d_s, scale=0.5),
        "U_a": random(d_a, d_h, scale=0.5),
        "v_a": random(d_a),
        **cell_parameters(d_h, d_s, prefix="gru_2."),
    }
    between = {}

    def of(p, prefix):
        return {k.removeprefix(prefix): v for k, v in p.items() if k.startswith(prefix)}

    def step(embedding, s_prev, h, length, W_a, U_a, v_a, **p):
        query = cell(embedding, s_prev, of(p, "gru_1."))
        asked = query.clone()  # a place of its own in the graph
        scores = torch.tanh((asked @ W_a.T)[:, None] + h @ U_a.T) @ v_a
        live = torch.arange(h.shape[1])[None] < length[:, None]
        weights = torch.softmax(scores.masked_fill(~live, -torch.inf), -1)
        context = (weights[:, None] @ h)[:, 0]
        s = cell(context, query, of(p, "gru_2."))
        between.update(query=query, asked=asked, context=context, weights=weights)
        for value in between.values():
            if value.requires_grad:
                value.retain_grad()
        return {"s": s}

    leaves = {k: v.clone().requires_grad_(v.dtype.is_floating_point) for k, v in inputs.items()}
    s = step(**leaves)["s"]
    up = random(*s.shape)
    s.backward(up)
    gradients = {f"grad.{k}": v.grad for k, v in leaves.items() if v.requires_grad}
    query, context = between["query"], between["context"]
    tensors = {
        **inputs,
        "query": query,
        "weights": between["weights"],
        "context": context,
        "s": s,
        "up.s": up,
        **gradients,
        "grad.query": query.grad,
        "grad.query_by_attention": between["asked"].grad,
        "grad.context": context.grad,
    }
    note = "query is s'_i; of its gradient grad.query, grad.query_by_attention comes through W_a alone"
    write("conditional_gru", tensors, gates="r,z,n", hidden=d_s, note=note)


gru_cell()
maxout()
conditional_gru()
