"""Rows of translating: throughput, latency, memory, the first line, company on the cores, precision."""
import dataclasses
import json
import os
import statistics

from .measure import Claim, Contender, Row, Way
from .process import Command, Session, busy_core, seconds_to_first_line
from .workshop import BENCH

WARM_UP = 64  # lines before the clock starts, on all sides; with fewer, gloss would hire fewer workers
OPUS = {"beam": 4, "pieces": 24}  # random weights never end a sentence: all get the same length


@dataclasses.dataclass
class Work:
    """A text and what to make of it. `pieces`: exactly so many a translation, the end symbol not counted; 0: as the
    model likes."""
    model: object
    lines: list
    beam: int
    pieces: int = 0
    batch: int | None = None  # of a worker; None: gloss's default, and the best of several for the peers
    threads: int = 2

    def shortened(self):
        return dataclasses.replace(self, lines=self.lines[:max(8, len(self.lines) // 4)])

    def file(self, shop):
        return shop.file(f"{self.model.name}-{len(self.lines)}", self.lines)


def tiny_lines(shop, count=1000):
    return shop.lines("test_2016_flickr.en", 24 if shop.quick else count, shop.options.text)


def tiny_work(shop, beam, count=1000, **more):
    return Work(shop.tiny(), tiny_lines(shop, count), beam, threads=shop.threads, **more)


def opus_work(shop, sentences, **more):
    lines = shop.lines("test_2016_flickr.en", 4 if shop.quick else sentences)
    return Work(shop.opus(), lines, OPUS["beam"], OPUS["pieces"], threads=shop.threads, **more)


# Ours

def forced_end(model):
    """Whether the end symbol at the longest length is free: it needs no step of the model."""
    return json.loads((model / "config.json").read_text(encoding="utf-8")).get("forced_eos_token_id") is not None


def gloss_command(shop, work, precision="float32", *more):
    words = ["translate", work.model, "--beam", work.beam, "--threads", work.threads, *more]
    if work.batch:
        words += ["--batch", work.batch]
    if work.pieces:
        length = work.pieces + forced_end(work.model)
        words += ["--min-length", length, "--max-length", length]
    if precision != "float32":
        shop.need_option("translate", "--precision")
        words += ["--precision", precision]
    return shop.our_command(*words)


def gloss_pieces(shop, work, command):
    """How many target pieces the whole text takes; as the peers' script counts them."""
    return work.pieces * len(work.lines) if work.pieces else shop.target_pieces(command, work.file(shop))


def gloss_throughput(shop, work, precision="float32", *more, setting=None):
    command = gloss_command(shop, work, precision, *more)

    def figure(short):
        now = work.shortened() if short else work
        with Session(command) as session:
            session.translate((now.lines * WARM_UP)[:WARM_UP if not shop.quick else 8])
            seconds = session.translate(now.lines)
        return gloss_pieces(shop, now, command) / seconds

    return Way(setting or precision, command, figure)


def gloss_latency(shop, work, precision):
    command = gloss_command(shop, work, precision)

    def figure(_):
        with Session(command) as session:
            for line in work.lines[:3]:  # one by one from the start, so that gloss hires for single sentences
                session.translate([line])
            return 1e3 * statistics.median(session.translate([line]) for line in work.lines)

    return Way(precision, command, figure)


def stored_as(shop, work, precision):
    """The same work with a folder that holds its weights in the precision."""
    return dataclasses.replace(work, model=shop.gloss_model(work.model, precision))


def gloss_memory(shop, work, precision):
    command = gloss_command(shop, stored_as(shop, work, precision), precision, "--workers", 2)

    def figure(_):
        with Session(command) as session:
            session.translate(work.lines)
            return session.peak_megabytes()

    return Way(precision, command, figure)


# Peers

def ctranslate2_command(shop, work, stored, kind, workers, threads, batch, what):
    words = [BENCH / "translate_peer.py", "ctranslate2", shop.ctranslate2_model(work.model, stored), work.file(shop),
             "--pieces", work.model, "--type", kind, "--beam", work.beam, "--batch", batch, "--workers", workers,
             "--threads", threads]
    if work.pieces:
        words += ["--length", work.pieces]
    if what != "throughput":
        words += ["--what", what]
    if shop.quick:
        words += ["--warm-up", 8]
    return shop.peer_command(*words)


def ctranslate2_ways(shop, work, kinds, what="throughput", layouts=None):
    """One way a precision, workers x threads, batch size; and, for memory, precision of the stored weights."""
    ways = []
    threads = work.threads
    layouts = layouts or sorted({(threads, 1), (1, threads)}, reverse=True)
    batches = (work.batch,) if work.batch else (32,) if what == "latency" or shop.quick else (16, 32, 64, 128)
    for kind in kinds:
        for workers, each in layouts:
            for batch in batches:
                for stored in sorted({"float32", kind}) if what == "memory" else (kind,):
                    arguments = (kind, workers, each, batch, what)
                    command = ctranslate2_command(shop, work, stored, *arguments)

                    def figure(short, stored=stored, arguments=arguments, command=command):
                        less = ctranslate2_command(shop, work.shortened(), stored, *arguments) if short else command
                        return float(less.run())

                    setting = f"{kind}, {workers} x {each} threads, batch {batch}"
                    ways.append(Way(setting + (f", stored as {stored}" if what == "memory" else ""), command, figure))
    return ways


def marian_ways(shop, work):
    ways = []
    for kind in ("float32", "intgemm8"):
        for batch in (32,) if shop.quick else (16, 32, 64, 128):
            def command_of(now, kind=kind, batch=batch):
                # Its workers are threads of their own: those of MKL would come on top.
                return shop.peer_command(BENCH / "translate_peer.py", "marian", shop.marian_model(now.model, kind),
                                         now.file(shop), "--pieces", now.model, "--beam", now.beam, "--batch", batch,
                                         "--workers", now.threads, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

            def figure(short, command_of=command_of):
                return float(command_of(work.shortened() if short else work).run())

            ways.append(Way(f"{kind}, {work.threads} threads, batch {batch}", command_of(work), figure))
    return ways


def by_precision(shop, work, make):
    return [Contender.of(f"gloss {one}", make, shop, work, one) for one in shop.precisions]


def ctranslate2_by_precision(shop, work, *arguments):
    return [Contender.of(f"CTranslate2 {one}", ctranslate2_ways, shop, work, (one,), *arguments)
            for one in ("float32", "int8")]


def claims_by_precision(wanted):
    return [Claim(one, (f"gloss {one}",), (f"CTranslate2 {one}",), least) for one, least in wanted.items()]


# Rows

def gloss_ways(shop, work, precision):
    """Ours at its best, as the peers: a sentence may end as theirs do, and batches may be small."""
    patience = []
    if work.beam > 1:
        shop.need_option("translate", "--patience")
        patience = ["--patience", 1]
    return [gloss_throughput(shop, work, precision, *patience, "--batch", batch,
                             setting=f"batch {batch}" + (", patience 1" if patience else ""))
            for batch in (8, 16, 32, 64)]


def tiny_throughput(beam, wanted):
    def prepare(shop):
        work = tiny_work(shop, beam)
        contenders = by_precision(shop, work, gloss_ways) + [
            Contender.of("CTranslate2", ctranslate2_ways, shop, work, ("float32", "int8")),
            Contender.of("Marian", marian_ways, shop, work)]
        # Whoever wants speed takes the fastest precision, ours or theirs; what that costs is the row "bleu".
        peers = "CTranslate2", "Marian"
        return contenders, [
            Claim("the fastest precision", tuple(f"gloss {one}" for one in shop.precisions), peers, wanted),
            Claim("float32 against the fastest precision", ("gloss float32",), peers)]
    return prepare


def opus_batch(shop):
    work = opus_work(shop, 192, batch=32)
    contenders = by_precision(shop, work, gloss_throughput) + ctranslate2_by_precision(shop, work)
    claims = claims_by_precision({"float32": 1.15, "int8": 1.4})
    if "bfloat16" in shop.precisions:  # which CTranslate2 does not have
        claims.append(Claim("bfloat16 against float32", ("gloss bfloat16",), ("CTranslate2 float32",), 1.9))
    return contenders, claims


def opus_latency(shop):
    work = opus_work(shop, 20)
    layouts = [(1, threads) for threads in range(1, work.threads + 1)]
    contenders = by_precision(shop, work, gloss_latency) + ctranslate2_by_precision(shop, work, "latency", layouts)
    return contenders, claims_by_precision({"float32": 0.85, "int8": 0.7})


def opus_memory(shop):
    work = opus_work(shop, 128, batch=32)
    contenders = by_precision(shop, work, gloss_memory) + ctranslate2_by_precision(shop, work, "memory", [(2, 1)])
    return contenders, claims_by_precision({"float32": 0.8, "int8": 0.7})


def start(work_of, wanted):
    def prepare(shop):
        work = work_of(shop)
        line, repeats = work.lines[0], 1 if shop.quick else 5

        def way(setting, command):
            return Way(setting, command,
                       lambda _: statistics.median(seconds_to_first_line(command, line) for _ in range(repeats)))

        def ours(kind):
            return way(kind, gloss_command(shop, stored_as(shop, work, kind), kind))

        def theirs(kind):
            model = shop.ctranslate2_model(work.model, kind)
            arguments = model, work.model, kind, work.beam, work.pieces
            return [way(f"{threads} threads", shop.peer_command(BENCH / "translate_line_ct2.py", *arguments, threads))
                    for threads in range(1, work.threads + 1)]

        contenders = [Contender.of(f"{name} {kind}", make, kind) for kind in ("float32", "int8")
                      for name, make in (("gloss", ours), ("CTranslate2", theirs))]
        return contenders, claims_by_precision({"float32": wanted, "int8": wanted})
    return prepare


def beside_busy(way):
    """The same work while another process computes on the last of the cores."""
    core = max(os.sched_getaffinity(0))

    def figure(short):
        with busy_core(core):
            return way.figure(short)

    return Way(way.setting, way.command, figure)


def busy_translating(shop):
    work = tiny_work(shop, 5, 300)
    ways = {"gloss": gloss_throughput(shop, work)}
    for workers, threads in ((work.threads, 1), (1, work.threads)):
        ways[f"CTranslate2 {workers} x {threads}"] = ctranslate2_ways(
            shop, dataclasses.replace(work, batch=32), ("float32",), layouts=[(workers, threads)])[0]
    return company(ways)


def company(ways):
    """Each way with the cores to itself and beside a busy process; only ours must keep its share."""
    contenders, claims = [], []
    for name, way in ways.items():
        contenders += [Contender(name, [way]), Contender(f"{name} beside it", [beside_busy(way)])]
        claims.append(Claim(f"{name}: beside a busy process, of alone", (f"{name} beside it",), (name,),
                            0.4 if name == "gloss" else None))
    return contenders, claims


def bleu(shop):
    work = tiny_work(shop, 5)
    text = work.file(shop)
    reference = shop.file(f"reference-{len(work.lines)}",
                          shop.lines("test_2016_flickr.de", len(work.lines), shop.options.text))

    def way(precision):
        hypothesis = shop.work / f"hypothesis-{precision}"
        translate = gloss_command(shop, work, precision, text, "--output", hypothesis)
        evaluate = Command((shop.gloss, "evaluate", "--hypothesis", hypothesis, "--reference", reference, "--tokenize",
                            "none" if shop.options.text == "tok" else "13a", "--json"))

        def figure(_):
            translate.run()
            return json.loads(evaluate.run())["bleu"]["score"]

        return Way(precision, translate, figure)

    contenders = [Contender.of(f"gloss {one}", way, one) for one in shop.precisions]
    return contenders, [Claim(f"{one} less float32", (f"gloss {one}",), ("gloss float32",), 0.3, "difference")
                        for one in shop.precisions if one != "float32"]


ROWS = [
    Row("tiny-beam", "trained `tiny`, 1,000 sentences, beam 5", "target tokens/s", tiny_throughput(5, 1.7)),
    Row("tiny-greedy", "trained `tiny`, 1,000 sentences, greedy", "target tokens/s", tiny_throughput(1, 1.3)),
    Row("opus-batch", "OPUS-MT size, beam 4, batch 32, 24 tokens", "target tokens/s", opus_batch),
    Row("opus-latency", "OPUS-MT size, beam 4, 24 tokens, one sentence at a time", "ms", opus_latency, "less"),
    Row("opus-memory", "OPUS-MT size, beam 4, batch 32, peak memory with two workers", "MB", opus_memory, "less"),
    Row("start-tiny", "from the start to the first translation, `tiny`", "s",
        start(lambda shop: tiny_work(shop, 5, 1), 0.2), "less"),
    Row("start-opus", "from the start to the first translation, OPUS-MT size", "s",
        start(lambda shop: opus_work(shop, 1), 0.5), "less"),
    Row("busy-translate", "translating with `tiny` beside a process that keeps one core busy", "target tokens/s",
        busy_translating),
    Row("bleu", "BLEU of `tiny` on test2016 by precision, beam 5", "BLEU", bleu, rounds=1),
]
