"""Rows of training: target tokens a second of everybody, and our share of the peak of matrix products."""
import json
import re
import shutil

from .measure import Claim, Contender, Row, Way, printed_by
from .process import Failed
from .translating import company
from .workshop import BENCH

# PyTorch's batches count the padded longer side, ours the target: this makes the updates equal.
BATCH_TOKENS, GLOSS_BATCH_TOKENS = 4096, 3540
QUICK_BATCH_TOKENS = 512
UPDATES = {"tiny": 60, "small": 40, "base": 12, "rnn-small": 30}
PIECES = 8000
BOTH = "float32", "bfloat16"


def updates_of(shop, size, short):
    return 3 if shop.quick else UPDATES[size] // 3 if short else UPDATES[size]


# Ours

def speed_of_log(log):
    """Target tokens a second by train.jsonl: of all entries but the first, which holds the start, over their time."""
    entries = [one for one in map(json.loads, log.read_text(encoding="utf-8").splitlines())
               if "target_tokens_per_second" in one]
    if len(entries) < 2:
        raise Failed("gloss train: the run was too short to leave its start out")
    spans = [after["seconds"] - before["seconds"] for before, after in zip(entries, entries[1:])]
    tokens = sum(entry["target_tokens_per_second"] * span for entry, span in zip(entries[1:], spans))
    return tokens / sum(spans)


def gloss_model(shop, size):
    return shop.work / f"trained-{size}"


def gloss_training(shop, size, precision="float32", threads=None):
    folder = gloss_model(shop, size)
    train, valid = ([shop.file(f"{name}.{language}", shop.lines(f"{name}.{language}")) for language in ("en", "de")]
                    for name in ("train", "val"))
    more = ()
    if precision != "float32":
        shop.need_option("train", "--precision")
        more = ("--precision", precision)

    # Three updates more than the peers, who do not count their first three either; enough for some lines of the log.
    updates = 40 if shop.quick else UPDATES[size] + 3
    command = shop.our_command(
        "train", "--train", *train, "--valid", *valid, "--output", folder, "--preset", size, "--vocab-size", PIECES,
        "--batch-tokens", QUICK_BATCH_TOKENS if shop.quick else GLOSS_BATCH_TOKENS, "--dropout", 0.1,
        "--label-smoothing", 0.1, "--average", 1, "--max-updates", updates, "--validate-every", 1000000, "--threads",
        threads or shop.threads, *more)

    def figure(_):
        shutil.rmtree(folder, ignore_errors=True)
        command.run()
        return speed_of_log(folder / "train.jsonl")

    return Way(f"{precision}, {threads or shop.threads} threads", command, figure)


# Peers

def torch_training(shop, size, impl, *flags):
    if size == "rnn-small":
        # Our pieces, of a run that came before.
        script = (BENCH / "rnn_train_torch.py", "--vocabulary", gloss_model(shop, size) / "source.spm")
    else:
        script = (shop.peers / "torch_train_speed.py",)

    def command_of(updates):
        return shop.peer_command(*script, "--size", size, "--steps", updates, "--impl", impl, "--threads",
                                 shop.threads, "--batch-tokens", QUICK_BATCH_TOKENS if shop.quick else BATCH_TOKENS,
                                 *flags)

    def figure(short):
        command = command_of(updates_of(shop, size, short))
        found = re.search(r": (\d+) target tok/s, parameters (\S+)", command.run())
        if not found:
            raise Failed(f"{script[0].name} printed no speed")
        if size == "rnn-small" and int(found[2]) != shop.parameters(gloss_model(shop, size)):
            raise Failed(f"{script[0].name}: its model has {found[2]} parameters, ours has another number")
        return float(found[1])

    return Way("".join([impl, *flags]).replace("--", ", "), command_of(updates_of(shop, size, False)), figure)


def marian_training(shop, size):
    def command_of(updates):
        # It prints a speed every ten updates, and the first entry is left out.
        rounded = 10 * max(2, -(-updates // 10))
        return shop.peer_command(shop.peers / "marian_train_speed.sh", size, rounded, shop.threads)

    def figure(short):
        entries = re.findall(r"Time ([\d.]+)s : ([\d.]+) words/s", command_of(updates_of(shop, size, short)).run())[1:]
        if not entries:
            raise Failed("marian_train_speed.sh printed no speed")
        seconds = sum(float(time) for time, _ in entries)
        return sum(float(time) * float(speed) for time, speed in entries) / seconds

    return Way(f"{shop.threads} threads", command_of(updates_of(shop, size, False)), figure)


def torch_ways(shop, size, precision):
    flags = ("--bf16",) if precision == "bfloat16" else ()
    compiling = ((),) if shop.quick else ((), ("--compile",))  # which takes minutes
    return [torch_training(shop, size, impl, *compiled, *flags) for impl in ("lean", "hf") for compiled in compiling]


# Rows

def training(size, wanted):
    """`wanted`: what is asked of each of our precisions, and the precisions of PyTorch that it is asked against."""
    def prepare(shop):
        precisions = [one for one in shop.precisions if one in wanted]
        contenders = [Contender.of(f"gloss {one}", gloss_training, shop, size, one) for one in precisions]
        contenders += [Contender.of(f"PyTorch {one}", torch_ways, shop, size, one) for one in precisions]
        contenders.append(Contender.of("Marian", marian_training, shop, size))
        claims = []
        for precision in precisions:
            least, of_peers = wanted[precision]
            against = tuple(f"PyTorch {one}" for one in of_peers if one in precisions) + ("Marian",)
            what = "float32 against float32" if of_peers == ("float32",) else f"{precision} against the fastest of all"
            claims.append(Claim(what, (f"gloss {precision}",), against, least))
        return contenders, claims
    return prepare


def recurrent(shop):
    peers = {f"PyTorch {impl}": impl for impl in ("eager", "lean")}
    contenders = [Contender.of("gloss", gloss_training, shop, "rnn-small"),
                  *(Contender.of(name, torch_training, shop, "rnn-small", impl) for name, impl in peers.items())]
    return contenders, [Claim("against the faster one", ("gloss",), tuple(peers), 1.5)]


def share_of_peak(size, wanted):
    """6 x parameters x target tokens/s counts a product of every weight with every target token, forward and twice
    back: what a model of one table of embeddings computes, if the source is as long as the target."""
    def prepare(shop):
        ours = gloss_training(shop, size)

        def gflops(short):
            return 6e-9 * ours.figure(short) * shop.parameters(gloss_model(shop, size))

        def peak_of_gloss():
            command = shop.our_command(f"--benchmark_filter=/threads:{shop.threads}(/|$)", "--benchmark_min_time=0.2",
                                       "--benchmark_format=json", program=shop.benchmark("gemm_bench"))
            return Way("the best of its float32 shapes", command, lambda _: best_gflops(command))

        def peak_of_torch():
            command = shop.peer_command(BENCH / "gemm_torch.py", shop.threads)
            return printed_by("the best of three shapes", command)

        peaks = {"gemm_bench": peak_of_gloss, "torch.mm": peak_of_torch}
        return [Contender("gloss train", [Way(ours.setting, ours.command, gflops)]),
                *(Contender.of(name, make) for name, make in peaks.items())], [
            Claim("share of the better peak", ("gloss train",), tuple(peaks), wanted)]
    return prepare


def best_gflops(command):
    """Of gemm_bench's shapes those whose names speak of no other precision than float32."""
    runs = json.loads(command.run())["benchmarks"]
    values = [run["GFLOP/s"] for run in runs
              if "GFLOP/s" in run and not re.search(r"bf16|bfloat16|int8|[us]8", run["name"])]
    if not values:
        raise Failed("gemm_bench printed no GFLOP/s")
    return max(values)


def busy_training(shop):
    return company({"gloss": gloss_training(shop, "tiny"), "PyTorch": torch_training(shop, "tiny", "lean")})


ROWS = [
    Row("train-tiny", "training `tiny`", "target tokens/s",
        training("tiny", {"float32": (2.5, BOTH), "bfloat16": (None, BOTH)})),
    Row("train-small", "training `small`", "target tokens/s",
        training("small", {"float32": (1.5, BOTH), "bfloat16": (2.0, BOTH)})),
    Row("train-base", "training `base`", "target tokens/s",
        training("base", {"float32": (1.3, ("float32",)), "bfloat16": (1.6, BOTH)})),
    Row("train-rnn-small", "training `rnn-small`", "target tokens/s", recurrent),
    Row("peak-tiny", "training `tiny`, its share of the peak of matrix products", "GFLOP/s",
        share_of_peak("tiny", 0.65)),
    Row("peak-base", "training `base`, its share of the peak of matrix products", "GFLOP/s",
        share_of_peak("base", 0.74)),
    Row("busy-train", "training `tiny` beside a process that keeps one core busy", "target tokens/s", busy_training),
]
