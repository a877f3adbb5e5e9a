#!/usr/bin/env python3
"""Additive attention in PyTorch, forward and backward: batches a second, as additive_bench makes them.

    additive_torch.py BATCH --calls step|all --way eager|compiled|by_hand [--threads N] [--seconds S]

BATCH is a file with a line "source target" of two lengths a sentence. Two ways of calling: `step`, once a time step
with one query for each sentence that is still alive, and `all`, every query at once. PyTorch pads; the ways to write
it are

    eager     the formula, differentiated by autograd
    compiled  the same through torch.compile
    by_hand   backward written out: gradients added in place, nothing stored but tanh, finished sentences left out

Before the clock starts the gradients are compared with eager's.
"""
import argparse
import pathlib
import sys
import time

import torch


def score(query, keys, v_a, hidden):
    """query [B, d_a] and keys [B, T, d_a], or [B, n, 1, d_a] and [B, 1, T, d_a]."""
    e = torch.tanh(query + keys) @ v_a
    return e if hidden is None else e.masked_fill(hidden, float("-inf"))


def attend_step(query, keys, h, v_a, hidden):
    a = torch.softmax(score(query[:, None], keys, v_a, hidden), -1)
    return torch.bmm(a[:, None], h)[:, 0]


def attend_all(query, keys, h, v_a, hidden):
    hidden = None if hidden is None else hidden[:, None]
    return torch.bmm(torch.softmax(score(query[:, :, None], keys[:, None], v_a, hidden), -1), h)


class Batch:
    """Padded random numbers for sentences in the order of their targets, longest first: the living stand in front."""

    def __init__(self, path, d_a, d_h):
        pairs = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
        pairs.sort(key=lambda pair: -pair[1])
        sources, targets = (torch.tensor(side) for side in zip(*pairs))
        self.size, self.steps = len(pairs), int(targets.max())
        self.alive = [int((targets > i).sum()) for i in range(self.steps)]
        longest = int(sources.max())
        hidden = torch.arange(longest)[None] >= sources[:, None]
        self.hidden = hidden if bool(hidden.any()) else None
        self.keys = torch.randn(self.size, longest, d_a)
        self.h = torch.randn(self.size, longest, d_h)
        self.v_a = torch.randn(d_a)
        self.query = torch.randn(self.steps, self.size, d_a)
        live = torch.arange(self.steps)[:, None] < targets[None]
        self.upstream = torch.randn(self.steps, self.size, d_h) * live[..., None]
        self.queries = [self.query[i].clone() for i in range(self.steps)]
        self.query_all = self.query.transpose(0, 1).contiguous()
        self.upstream_all = self.upstream.transpose(0, 1).contiguous()
        for leaf in (self.keys, self.h, self.v_a, self.query_all, *self.queries):
            leaf.requires_grad_(True)

    def hidden_of(self, count):
        return None if self.hidden is None else self.hidden[:count]


def step_autograd(batch, attend):
    contexts = [attend(q, batch.keys, batch.h, batch.v_a, batch.hidden) for q in batch.queries]
    leaves = [batch.keys, batch.h, batch.v_a, *batch.queries]
    return torch.autograd.grad(contexts, leaves, list(batch.upstream))


def all_autograd(batch, attend):
    context = attend(batch.query_all, batch.keys, batch.h, batch.v_a, batch.hidden)
    return torch.autograd.grad(context, [batch.keys, batch.h, batch.v_a, batch.query_all], batch.upstream_all)


def softmax_backward(a, da):
    return a * (da - (a * da).sum(-1, keepdim=True))


def forward_of_step(query, keys, h, v_a, hidden):
    """attend_step by hand: tanh and the weights, which backward_of_step needs, and the context."""
    z = (keys + query[:, None]).tanh_()
    e = z @ v_a
    if hidden is not None:
        e.masked_fill_(hidden, float("-inf"))
    a = torch.softmax(e, -1)
    return z, a, torch.bmm(a[:, None], h)[:, 0]


def backward_of_step(z, a, dc, h, v_a, dkeys, dh, dv_a):
    """Adds to dkeys, dh and dv_a in place, returns the gradient of the query. Overwrites z."""
    dh.addcmul_(a[:, :, None], dc[:, None])
    # The vector in front: bmm of a matrix and a vector behind it takes several times as long.
    de = softmax_backward(a, torch.bmm(dc[:, None], h.transpose(1, 2))[:, 0])
    dv_a.addmv_(z.view(-1, z.shape[-1]).T, de.view(-1))
    du = z.square_().neg_().add_(1).mul_(v_a).mul_(de[..., None])
    dkeys += du
    return du.sum(1)


@torch.no_grad()
def step_by_hand(batch):
    kept = []
    for i, alive in enumerate(batch.alive):
        query, hidden = batch.queries[i][:alive], batch.hidden_of(alive)
        z, a, _ = forward_of_step(query, batch.keys[:alive], batch.h[:alive], batch.v_a, hidden)
        kept.append((z, a))
    dkeys, dh, dv_a = torch.zeros_like(batch.keys), torch.zeros_like(batch.h), torch.zeros_like(batch.v_a)
    dqueries = [None] * batch.steps
    for i in reversed(range(batch.steps)):
        (z, a), alive = kept.pop(), batch.alive[i]
        dqueries[i] = torch.zeros_like(batch.queries[i])
        dqueries[i][:alive] = backward_of_step(z, a, batch.upstream[i, :alive], batch.h[:alive], batch.v_a,
                                               dkeys[:alive], dh[:alive], dv_a)
    return [dkeys, dh, dv_a, *dqueries]


@torch.no_grad()
def all_by_hand(batch):
    z = (batch.query_all[:, :, None] + batch.keys[:, None]).tanh_()
    e = z @ batch.v_a
    if batch.hidden is not None:
        e.masked_fill_(batch.hidden[:, None], float("-inf"))
    a = torch.softmax(e, -1)
    torch.bmm(a, batch.h)
    dc = batch.upstream_all
    dh = torch.bmm(a.transpose(1, 2), dc)
    de = softmax_backward(a, torch.bmm(dc, batch.h.transpose(1, 2)))
    dv_a = z.view(-1, z.shape[-1]).T @ de.view(-1)
    du = z.square_().neg_().add_(1).mul_(batch.v_a).mul_(de[..., None])
    return [du.sum(1), dh, dv_a, du.sum(2)]


def differentiated(calls, way, batch):
    """A function without arguments that gives all gradients."""
    attend, autograd, by_hand = {
        "step": (attend_step, step_autograd, step_by_hand),
        "all": (attend_all, all_autograd, all_by_hand),
    }[calls]
    if way == "by_hand":
        return lambda: by_hand(batch)
    if way == "compiled":
        attend = torch.compile(attend, dynamic=False)
    return lambda: autograd(batch, attend)


def check(got, want):
    if not all(torch.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(got, want)):
        sys.exit("additive_torch.py: the gradients are not those of 'eager'")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("batch", type=pathlib.Path)
    parser.add_argument("--calls", choices=("step", "all"), required=True)
    parser.add_argument("--way", choices=("eager", "compiled", "by_hand"), required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--d-a", type=int, default=256)
    parser.add_argument("--d-h", type=int, default=512)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    batch = Batch(arguments.batch, arguments.d_a, arguments.d_h)
    run = differentiated(arguments.calls, arguments.way, batch)
    check(run(), differentiated(arguments.calls, "eager", batch)())
    run()
    calls, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < arguments.seconds or calls < 2:
        run()
        calls += 1
    print(f"{calls / spent:.4f}")


if __name__ == "__main__":
    main()
