"""Hugging Face checkpoints, imported and exported, against transformers.

    pip install torch transformers sacremoses onnx onnxscript onnxruntime
    cargo build --release -p isogloss && cargo build --release -p isogloss-models --example states
    python3 bench/hub.py --work FOLDER proof          (models, files, token ids, exported runs)
    python3 bench/hub.py --work FOLDER speed          (loading and encoding, alternating runs)

Text and multilingual BERT's WordPiece vocabulary come from the folder that ISOGLOSS_DATA names; parts that
need them are skipped with a message where it is not set.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "crates/hub/tests/fixtures"))
import make  # noqa: E402
import record  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as hf  # noqa: E402

STATES = ROOT / "target/release/examples/states"
ISOGLOSS = ROOT / "target/release/isogloss"
DATA = os.environ.get("ISOGLOSS_DATA")
SHAPES = [
    make.shape(),
    make.shape(layers=1, heads=1, dim=24, hidden=40, positions=5),
    make.shape(layers=3, heads=5, dim=60, hidden=240, positions=40),
    make.shape(layers=4, heads=4, dim=256, hidden=1024, positions=128),
    make.shape(layers=2, heads=16, dim=1024, hidden=4096, positions=64),
]


def ours(folder, sequences, work):
    """The output of Isogloss for sequences: their token ids, and all hidden states and logits."""
    (work / "input.json").write_text(json.dumps(sequences))
    done = subprocess.run([STATES, folder, work / "input.json", work / "out.f32"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout), np.fromfile(work / "out.f32", "<f4")


def differences(model, family, sequences, mine):
    """The largest absolute differences of hidden states and of logits."""
    config = model.config
    theirs, at, states, logits = make.states(model, sequences), 0, 0.0, 0.0
    layers = config.n_layers if family.startswith(("xlm-sin", "distil")) or family == "xlm" else config.num_hidden_layers
    dim = model.get_input_embeddings().weight.shape[1]
    for sequence in sequences:
        tokens = len(sequence["ids"])
        for part in range(layers + 3):
            size = tokens * (config.vocab_size if part == layers + 2 else dim)
            gap = float(np.abs(theirs[at:at + size] - mine[at:at + size]).max())
            at += size
            if part == layers + 2:
                logits = max(logits, gap)
            elif not (family == "xlm-roberta-xl" and part == layers):  # transformers returns it after the final LayerNorm
                states = max(states, gap)
    assert at == len(theirs) == len(mine)
    return states, logits


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def saved(work, family, shape, seed):
    folder = fresh(work / "model")
    tokenizer = make.save_tokenizer(family, folder, whole=seed % 2 == 0)
    size = make.size_of(tokenizer)
    model = make.random_model(family, shape, size, seed)
    return folder, model, make.random_sequences(family, size, shape["positions"], count=6, seed=seed)


def families(work):
    row("family", "shapes", "hidden states", "logits")
    row("---", "---", "---", "---")
    for family in make.FAMILIES:
        worst = [0.0, 0.0]
        for seed, shape in enumerate(SHAPES):
            if family.startswith("xlm") and "roberta" not in family:
                shape = dict(shape, hidden=4 * shape["dim"])
            folder, model, sequences = saved(work, family, shape, seed)
            model.save_pretrained(folder)
            gaps = differences(model, family, sequences, ours(folder, sequences, work)[1])
            worst = [max(pair) for pair in zip(worst, gaps)]
        row(family, len(SHAPES), *(f"{gap:.1e}" for gap in worst))


def formats(work):
    row("files", "hidden states", "logits")
    row("---", "---", "---")
    shape = SHAPES[3]
    for name in ["several safetensors", "pytorch_model.bin", "pytorch_model.bin, old", "f16", "bf16"]:
        folder, model, sequences = saved(work, "bert", shape, 0)
        if name in ("f16", "bf16"):
            kind = torch.float16 if name == "f16" else torch.bfloat16
            model.to(kind).save_pretrained(folder)
            model = model.float()
        elif name.startswith("several"):
            model.save_pretrained(folder, max_shard_size="2MB")
            assert len(list(folder.glob("*.safetensors"))) > 2
        else:
            model.config.architectures = ["BertForMaskedLM"]
            model.config.save_pretrained(folder)
            torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization="old" not in name)
        gaps = differences(model, "bert", sequences, ours(folder, sequences, work)[1])
        row(name, *(f"{gap:.1e}" for gap in gaps))


def xnli():
    """Premises and hypotheses of XNLI, by language, for all languages in the folder."""
    texts = {}
    for path in sorted(pathlib.Path(DATA, "xnli").glob("*-*.tsv")):
        lines = path.read_text().splitlines()
        texts.setdefault(path.stem.split("-")[1], []).extend(text for line in lines for text in line.split("\t")[:2])
    return {language: [text for text in lines if text.strip()] for language, lines in texts.items()}


def all_scripts(subwords):
    """Text in every script that multilingual BERT knows: its own subwords, eight per line."""
    words = [subword.removeprefix("##") for subword in subwords if not subword.startswith("[")]
    random.Random(1).shuffle(words)
    return [("" if at % 16 else " ").join(words[at:at + 8]) for at in range(0, len(words), 8)]


def token_ids(work):
    if not DATA:
        return print("skipped: token ids of XNLI (ISOGLOSS_DATA is not set)")
    texts = xnli()
    row("tokenizer", "sentences", "sets", "with the same ids")
    row("---", "---", "---", "---")
    wordpieces = pathlib.Path(DATA, "vocab/mbert_cased_vocab.txt")
    vocabulary = {subword: at for at, subword in enumerate(wordpieces.read_text().splitlines())}
    texts["all"] = all_scripts(vocabulary)
    tiny = make.shape(layers=1, heads=1, dim=2, hidden=2, positions=2048)
    for name in ["multilingual BERT, vocab.txt", "multilingual BERT, tokenizer.json", "the same, uncased"]:
        folder = fresh(work / "model")
        theirs = hf.BertTokenizer(vocab=vocabulary, do_lower_case="uncased" in name)
        if "json" in name:
            theirs.save_pretrained(folder)
        else:
            shutil.copy(wordpieces, folder / "vocab.txt")
            (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": "uncased" in name}))
        make.random_model("bert", tiny, len(vocabulary)).save_pretrained(folder)
        compare_ids(work, folder, name, theirs, texts)
    learned_tokenizers(work, texts)


def learned_tokenizers(work, texts):
    """No real vocabulary of byte-level BPE, unigram or XLM's BPE is available, so each is learned from XNLI."""
    import tokenizers as tk
    texts = {language: lines[:2000] for language, lines in texts.items()}
    sample = [text for lines in texts.values() for text in lines]
    folder = fresh(work / "learned")
    bytes_ = tk.ByteLevelBPETokenizer()
    bytes_.train_from_iterator(sample, vocab_size=8000, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False)
    bytes_.save_model(str(folder))
    for name, whole in [("RoBERTa, vocab.json and merges.txt", False), ("RoBERTa, tokenizer.json", True)]:
        theirs = hf.RobertaTokenizer(vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"))
        model = fresh(work / "model")
        if whole:
            theirs.save_pretrained(model)
        else:
            [shutil.copy(folder / file, model) for file in ("vocab.json", "merges.txt")]
        tiny = make.shape(layers=1, heads=1, dim=2, hidden=2, positions=2048)
        make.random_model("roberta", tiny, make.size_of(theirs)).save_pretrained(model)
        compare_ids(work, model, name, theirs, texts)
    unigram = tk.Tokenizer(tk.models.Unigram())
    unigram.pre_tokenizer = tk.pre_tokenizers.Metaspace()
    unigram.train_from_iterator(sample, tk.trainers.UnigramTrainer(vocab_size=8000, unk_token="<unk>", show_progress=False, special_tokens=["<s>", "<pad>", "</s>", "<unk>"]))
    subwords = [tuple(subword) for subword in json.loads(unigram.to_str())["model"]["vocab"]]
    theirs = hf.XLMRobertaTokenizer(vocab=subwords)
    model = fresh(work / "model")
    theirs.save_pretrained(model)
    make.random_model("xlm-roberta", tiny, make.size_of(theirs)).save_pretrained(model)
    compare_ids(work, model, "XLM-R, tokenizer.json", theirs, texts)
    xlm_words(work, texts)


def xlm_words(work, texts):
    """XLM's tokenizer splits words with Moses, for which Isogloss has its own rules."""
    import tokenizers as tk
    texts = {language: lines for language, lines in texts.items() if language in ("en", "fr")}
    sample = [text.lower() for lines in texts.values() for text in lines[:1500]]
    learned = tk.Tokenizer(tk.models.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    learned.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    specials = ["<s>", "</s>", "<pad>", "<unk>"] + [f"<special{n}>" for n in range(10)]
    learned.train_from_iterator(sample, tk.trainers.BpeTrainer(vocab_size=8000, special_tokens=specials, end_of_word_suffix="</w>", show_progress=False))
    described = json.loads(learned.to_str())["model"]
    model = fresh(work / "model")
    (model / "vocab.json").write_text(json.dumps(described["vocab"]))
    pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in described["merges"]]
    (model / "merges.txt").write_text("".join(f"{a} {b} 1\n" for a, b in pairs))
    theirs = hf.XLMTokenizer(str(model / "vocab.json"), str(model / "merges.txt"))
    shape = make.shape(layers=1, heads=1, dim=2, hidden=8, positions=2048)
    make.random_model("xlm", shape, make.size_of(theirs)).save_pretrained(model)

    def by_language(text, language):
        # `tokenize` no longer passes the language on, and would tokenise French as English.
        subwords = theirs._tokenize(text, lang=language)
        return theirs.build_inputs_with_special_tokens(theirs.convert_tokens_to_ids(subwords))

    texts = {language: lines[:1000] for language, lines in texts.items()}
    compare_ids(work, model, "XLM, vocab.json and merges.txt", by_language, texts)


def compare_ids(work, folder, name, theirs, texts):
    same = total = 0
    for language, lines in texts.items():
        expected = [theirs(text, language) for text in lines] if not hasattr(theirs, "get_vocab") else theirs(lines)["input_ids"]
        (work / "input.json").write_text(json.dumps([dict(language=language, text=text) for text in lines]))
        done = subprocess.run([STATES, folder, work / "input.json"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout)
        wrong = [at for at in range(len(lines)) if found[at] != expected[at]]
        same, total = same + len(lines) - len(wrong), total + len(lines)
    row(name, total, len(texts), same)


RUNS = {
    "tiny, no-anchors": ["--preset", "no-anchors"],
    "tiny, default": ["--preset", "default"],
    "tiny, sep-emb-l1-3": ["--preset", "sep-emb-l1-3"],
    "post-LayerNorm": ["--preset", "default", "--encoder.norm", "post"],
    "post-LayerNorm, language embeddings": ["--preset", "default", "--encoder.norm", "post", "--encoder.language_embeddings", "true"],
    "post-LayerNorm, dense layer": ["--preset", "default", "--encoder.norm", "post", "--encoder.transform", "true"],
    "post-LayerNorm, narrow": ["--preset", "default", "--encoder.norm", "post", "--encoder.hidden", "96"],
}


def exported(work):
    """Short runs, exported, loaded by transformers and compared on text."""
    row("run", "loaded as", "text has the same ids", "logits")
    row("---", "---", "---", "---")
    shutil.rmtree(work / "world", ignore_errors=True)
    call(ISOGLOSS, "world", "generate", "--out", work / "world")
    for name, flags in RUNS.items():
        for folder in ("run", "export"):
            shutil.rmtree(work / folder, ignore_errors=True)
        call(ISOGLOSS, "pretrain", "--world", work / "world", "--scale", "tiny", "--steps", "1000", "--out", work / "run", *flags)
        languages = json.loads((work / "run/config.json").read_text())["encoder"]["languages"]
        language = languages[1]
        several = "language embeddings" in name
        call(ISOGLOSS, "hub", "export", "--model", work / "run", "--out", work / "export", *([] if several else ["--lang", language]))
        model = hf.AutoModelForMaskedLM.from_pretrained(work / "export").eval()
        tokenizer = hf.AutoTokenizer.from_pretrained(work / "export")
        lines = sentences_of(work / "world", language)
        (work / "input.json").write_text(json.dumps([dict(language=language, text=line) for line in lines]))
        done = subprocess.run([STATES, work / "run", work / "input.json", work / "out.f32"], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        mine, at, gap, same = np.fromfile(work / "out.f32", "<f4"), 0, 0.0, 0
        encoder = json.loads((work / "run/config.json").read_text())["encoder"]
        width = len(mine) // sum(map(len, found)) - encoder["dim"] * (encoder["layers"] + 2)
        for line, ids in zip(lines, found):
            inputs = tokenizer(line, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            same += inputs["input_ids"].shape[1] == len(ids)
            if several:
                inputs["langs"] = torch.full_like(inputs["input_ids"], languages.index(language))
            with torch.no_grad():
                logits = model(**inputs).logits[0].numpy()
            at += len(ids) * encoder["dim"] * (encoder["layers"] + 2)
            own = mine[at:at + len(ids) * width].reshape(len(ids), width)
            at += own.size
            # One language of a shared table: compare the subwords of the sentence under either token id mapping.
            if width != logits.shape[1]:
                own, logits = own[:, ids], logits[:, inputs["input_ids"][0].numpy()]
            gap = max(gap, float(np.abs(own - logits).max()))
        assert at == len(mine)
        row(name, type(model).__name__, f"{same} of {len(lines)}", f"{gap:.1e}")


def sentences_of(world, language):
    """The first sentences of the language's retrieval test."""
    file = next(world.glob(f"tatoeba/*.{language}"))
    return file.read_text().splitlines()[:50]


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr}")
    return done.stdout


def speed(work, count, rounds):
    if not DATA:
        sys.exit("set ISOGLOSS_DATA: sentences and the vocabulary come from there")
    torch.set_num_threads(2)
    folder = work / "mbert"
    if not (folder / "model.safetensors").exists():
        shape = make.shape(layers=12, heads=12, dim=768, hidden=3072, positions=512)
        model = make.random_model("bert", shape, 119547)
        model.save_pretrained(fresh(folder))
        shutil.copy(pathlib.Path(DATA, "vocab/mbert_cased_vocab.txt"), folder / "vocab.txt")
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    size = (folder / "model.safetensors").stat().st_size / 1e6
    loads = [json.loads(call(ISOGLOSS, "hub", "import", folder, "--out", work / "imported", "--force", "--device", "cpu", "--json"))["seconds"] for _ in range(4)]
    print(f"loading {size:.0f} MB, cached: {min(loads[1:]):.2f} to {max(loads[1:]):.2f} s")
    encode_speed(work, folder, count, rounds)


def encode_speed(work, folder, count, rounds):
    """Encoding by turns: peers in batches of 32 sorted by length and tokenised beforehand, sentence-transformers and Isogloss from text."""
    random.seed(1)
    everything = [text for lines in xnli().values() for text in lines[:2000]]
    texts = [" ".join(text.split()) for text in random.sample(everything, count)]
    (work / "text.txt").write_text("".join(text + "\n" for text in texts))
    tokenizer = hf.BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=False)
    order = sorted(range(count), key=lambda at: len(tokenizer(texts[at])["input_ids"]))
    batches = [tokenizer([texts[at] for at in order[start:start + 32]], padding=True, return_tensors="pt") for start in range(0, count, 32)]
    tokens = sum(int(batch["attention_mask"].sum()) for batch in batches)
    padded = sum(batch["input_ids"].numel() for batch in batches)
    load = lambda kind, dtype=torch.float32: hf.BertModel.from_pretrained(folder, attn_implementation=kind, add_pooling_layer=False, dtype=dtype).eval()
    models = {"eager": load("eager"), "sdpa": load("sdpa"), "bf16": load("sdpa", torch.bfloat16)}

    def pooled(states, mask):
        return (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    def with_torch(kind):
        with torch.inference_mode():
            parts = [pooled(models[kind](**batch).last_hidden_state.float(), batch["attention_mask"]) for batch in batches]
        return torch.cat(parts).numpy()[np.argsort(order)]

    def with_us(device):
        (work / "out.npy").unlink(missing_ok=True)
        done = call(ISOGLOSS, "encode", "--model", folder, "--text", f"xx={work / 'text.txt'}", "--layers", "12", "--out", work / "out.npy", "--device", device, "--threads", "2", "--json")
        return json.loads(done)["seconds"]

    systems = {
        "Isogloss": lambda: with_us("cpu"),
        "transformers, eager": lambda: with_torch("eager"),
        "transformers, sdpa": lambda: with_torch("sdpa"),
    }
    runtime = onnx(work, models["eager"], batches[0])
    names = ("input_ids", "attention_mask", "token_type_ids")
    systems["ONNX Runtime"] = lambda: [runtime.run(None, {name: batch[name].numpy() for name in names}) for batch in batches] and None
    try:
        from sentence_transformers import SentenceTransformer
        wrapped = SentenceTransformer(str(folder), device="cpu")  # a folder without modules of its own gets mean pooling
        systems["sentence-transformers"] = lambda: wrapped.encode(texts, batch_size=32) is None
    except ImportError:
        print("left out: sentence-transformers is not installed")
    ours_in_bf16 = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    if ours_in_bf16:
        systems["Isogloss, cpu-bf16"] = lambda: with_us("cpu-bf16")
        systems["transformers, sdpa, bf16"] = lambda: with_torch("bf16")
    times = {name: [] for name in systems}
    for round_ in range(rounds + 1):  # the first warms up
        for name, work_ in systems.items():
            start = time.perf_counter()
            seconds = work_()
            seconds = seconds if isinstance(seconds, float) else time.perf_counter() - start
            if round_:
                times[name].append(seconds)
    print(f"{count} sentences of XNLI, {tokens} tokens ({padded} with padding), {rounds} rounds")
    row("", "tokens/s, best", "Isogloss is, by round", "Isogloss in bf16 is")
    row("---", "---", "---", "---")
    ratio = lambda own, others: ", ".join(f"{other / own:.2f}" for own, other in zip(times[own], others)) if own in times else ""
    for name, all_ in times.items():
        row(name, f"{tokens / min(all_):.0f}", ratio("Isogloss", all_), ratio("Isogloss, cpu-bf16", all_))
    for name in [name for name in times if not name.startswith("Isogloss")]:
        case, own = ("bf16", "Isogloss, cpu-bf16") if name.endswith("bf16") else ("f32", "Isogloss")
        record.record(case, name, times[own], times[name], "s")
    if ours_in_bf16:
        vectors = lambda device: (with_us(device), np.load(work / "out.npy"))[1]
        print_error("Isogloss", vectors("cpu-bf16"), vectors("cpu"))
        print_error("transformers", with_torch("bf16"), with_torch("sdpa"))


def print_error(name, found, exact):
    """How far sentence vectors in bf16 are from the same program's in f32, once the mean, which all share, is subtracted."""
    found, exact = (x.astype(np.float64) - x.mean(axis=0) for x in (found, exact))
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    print(f"{name}: relative error {error:.1e} of sentence vectors in bf16")


class States(torch.nn.Module):
    """Returns the last hidden states only, with positional inputs, as ONNX export needs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        inputs = dict(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return self.model(**inputs).last_hidden_state


def onnx(work, model, batch):
    import onnxruntime
    path = work / "model.onnx"
    if not path.exists():
        names = ["input_ids", "attention_mask", "token_type_ids"]
        axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=512)}
        inputs = tuple(batch[name] for name in names)
        torch.onnx.export(States(model), inputs, str(path), input_names=names, output_names=["states"], dynamic_shapes=(axes,) * 3, dynamo=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["proof", "families", "formats", "ids", "exported", "speed"])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=192, help="sentences of speed")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of speed")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    timed = lambda work: speed(work, arguments.count, arguments.rounds)
    parts = dict(families=families, formats=formats, ids=token_ids, exported=exported, speed=timed)
    chosen = ["families", "formats", "ids", "exported"] if arguments.what == "proof" else [arguments.what]
    for name in chosen:
        parts[name](arguments.work)


if __name__ == "__main__":
    main()
