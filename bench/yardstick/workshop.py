"""Where the rows get what they work with: programs, the peers' environment, models, texts."""
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from .process import Command, Failed, settings

BENCH = pathlib.Path(__file__).resolve().parent.parent
REPO = BENCH.parent
BUILT = "gloss", "additive_bench", "attention_bench", "gemm_bench", "gru_bench"
# What keeps the peers from instructions past AVX2: CTranslate2, PyTorch, and the libraries inside them and Marian.
ONLY_AVX2 = {"CT2_FORCE_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
             "DNNL_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "INTGEMM_CPUID": "AVX2"}
TEXTS = {"raw": ("multi30k", ""), "tok": ("multi30k/tok", ".lc.norm.tok")}  # folder, infix


class Workshop:
    def __init__(self, options):
        self.options = options
        self.threads, self.quick = options.threads, options.quick
        self.limited = options.isa != "native"
        self.precisions = ("float32", "int8") if self.limited else ("float32", "bfloat16", "int8")  # of ours
        self.work = options.work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.shared = pathlib.Path(os.environ.get("GLOSS_SHARED", REPO / ".." / "shared")).resolve()
        self.peers = self.shared / "peers"
        if not (self.peers / "common.py").exists():
            raise SystemExit(f"bench/run: there is no {self.peers}/common.py: set GLOSS_SHARED to the folder of peers/")
        if self.limited:
            # Everything that is started inherits it; commands name the one that they heed.
            os.environ.update(ONLY_AVX2, GLOSS_ISA=options.isa)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["PYTHONPATH"] = str(self.peers)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self.gloss = self._programs()
        self.python = self._environment()
        self._pieces = {}

    # Programs

    def _programs(self):
        named = os.environ.get("GLOSS")
        if named:
            if not os.access(named, os.X_OK):
                raise SystemExit(f"bench/run: GLOSS names no program: {named}")
            return pathlib.Path(named).resolve()
        print("builds gloss, if it is not there (GLOSS names a program that is)", flush=True)
        for words in (["cmake", "--preset", "release", "-DGLOSS_BENCH=ON"],
                      ["cmake", "--build", "--preset", "release", "--target", *BUILT]):
            if subprocess.run(words, cwd=REPO, stdout=subprocess.DEVNULL).returncode != 0:
                raise SystemExit(f"bench/run: {' '.join(words)} failed")
        return REPO / "build/release/bin/gloss"

    def benchmark(self, name):
        """One of our micro-benchmarks; they stand beside the program."""
        program = self.gloss.parent / name
        if not os.access(program, os.X_OK):
            raise Failed(f"there is no {name} beside gloss: configure with -DGLOSS_BENCH=ON and build that target")
        return program

    def _environment(self):
        """The peers' Python, made once."""
        named = self.options.venv or os.environ.get("GLOSS_PEERS_VENV")
        venv = pathlib.Path(named) if named else self.work / "venv"
        python = venv / "bin/python3"
        if not named and not (venv / "complete").exists():
            print(f"makes a Python environment for the peers in {venv}", flush=True)
            subprocess.run(["python3", "-m", "venv", venv], check=True)
            subprocess.run([venv / "bin/pip", "install", "--quiet", "--requirement", BENCH / "requirements.txt"],
                           check=True)
            (venv / "complete").touch()
        if not python.exists():
            raise SystemExit(f"bench/run: {venv} holds no Python environment")
        os.environ["PATH"] = f"{venv.resolve() / 'bin'}:{os.environ['PATH']}"  # for marian_train_speed.sh
        return python.absolute()

    def versions(self):
        names = [line.split("==")[0].strip() for line in (BENCH / "requirements.txt").read_text().splitlines()
                 if line and not line.startswith("#")]
        script = ("import importlib.metadata as m, sys\n"
                  "for name in sys.argv[1:]: print(name, m.version(name))")
        return Command((self.python, "-c", script, *names)).run().strip().splitlines()

    def our_command(self, *words, program=None):
        """gloss, or one of our benchmarks, with its arguments."""
        return Command((program or self.gloss, *words), {"GLOSS_ISA": self.options.isa} if self.limited else {})

    def peer_command(self, *words, **environment):
        """A Python script (or, if its name ends in .sh, a bash one) with its arguments."""
        interpreter = "bash" if str(words[0]).endswith(".sh") else self.python
        return Command((interpreter, *words), {**environment, **(ONLY_AVX2 if self.limited else {})})

    def need_option(self, command, option):
        if f"{option} " not in Command((self.gloss, command, "--help-all")).run():
            raise Failed(f"this gloss {command} has no option {option}")

    # Texts

    def lines(self, name, count=None, text="raw"):
        """The first lines of a text of Multi30k, `train`, `val` or `test_2016_flickr`, with its language: "val.en"."""
        folder, infix = TEXTS[text]
        stem, language = name.rsplit(".", 1)
        path = self.shared / "data" / folder / f"{stem}{infix}.{language}.gz"
        if not path.exists():
            raise Failed(f"there is no {path}")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read().split("\n")[:-1][:count]

    def file(self, name, lines):
        """A file of these lines in the work folder."""
        path = self.work / "text" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    # Models

    def tiny(self):
        """The trained model of preset tiny, named on the command line or trained here."""
        if self.options.model:
            if not (self.options.model / "config.json").exists():
                raise Failed(f"{self.options.model} is no model folder")
            return self.options.model.resolve()
        folder = self.work / ("tiny-quick" if self.quick else f"tiny-{self.options.text}")
        if not (folder / "finished").exists():
            limit = ("--max-updates", "30", "--validate-every", "1000000") if self.quick else ("--minutes", "60")
            print(f"trains a model in {folder} (--model names one that is there already)", flush=True)
            environment = {"GLOSS": str(self.gloss), "GLOSS_SHARED": str(self.shared)}
            Command(("bash", BENCH / "multi30k.sh", self.options.text, folder, "--tests", "none", *limit),
                    environment).run()
            (folder / "finished").touch()
        return folder

    def opus(self):
        """A folder of OPUS-MT size, random weights."""
        folder = self.work / "opus"
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            self.peer_command(self.peers / "make_opus_like.py", folder).run()
            (folder / "complete").touch()
        return folder

    def _converted(self, model, name, convert):
        """What convert(folder) makes of a model, once for each content of it."""
        with open(model / "model.safetensors", "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        folder = self.work / "converted" / f"{model.name}-{content}" / name
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            convert(folder)
            (folder / "complete").touch()
        return folder

    def gloss_model(self, model, precision):
        """A folder that holds its weights in the precision, as the peers' does."""
        if precision == "float32":
            return model
        return self._converted(model, f"gloss-{precision}", lambda folder: Command(
            (self.gloss, "quantize", model, folder, "--precision", precision)).run())

    def ctranslate2_model(self, model, precision):
        converter = self.python.parent / "ct2-transformers-converter"
        quantization = () if precision == "float32" else ("--quantization", precision)
        return self._converted(model, f"ctranslate2-{precision}", lambda folder: Command(
            (converter, "--model", model, "--output_dir", folder, *quantization)).run())

    def marian_model(self, model, kind):
        """The file that Marian reads: model.npz, or packed for its integer products."""
        folder = self._converted(model, "marian", lambda to: self.peer_command(
            BENCH / "marian_model.py", model, to).run())
        if kind == "float32":
            return folder / "model.npz"
        packed = folder / f"{kind}.bin"
        if not packed.exists():
            pymarian = self.python.parent / "pymarian"
            Command((pymarian, "convert", "-f", folder / "model.npz", "-t", packed, "-g", kind)).run()
        return packed

    # What the program says

    def parameters(self, model):
        return json.loads(Command((self.gloss, "info", model, "--json")).run())["parameters"]["total"]

    def target_pieces(self, command, text):
        """The pieces that a gloss translate writes for the lines of a file, with their end symbols."""
        key = str(command), str(text)
        if key not in self._pieces:
            output = Command((*command.words, text, "--json"), command.environment).run()
            best = (json.loads(line)["translations"][0] for line in output.splitlines())
            self._pieces[key] = sum(len(one["token_log_probabilities"]) for one in best)
        return self._pieces[key]

    def shown(self, command):
        """A command as it stands in the documentation: without the paths of this machine."""
        text = str(command).replace(settings(ONLY_AVX2), "env $AVX2")
        for path, name in ((self.gloss.parent, ""), (self.python.parent, "$VENV/bin"), (self.work, "$WORK"),
                           (self.options.model and self.options.model.resolve(), "$MODEL"),
                           (self.shared, "$GLOSS_SHARED"), (REPO, "")):
            if path:
                text = text.replace(f"{path}/" if not name else str(path), f"{name}")
        return text
