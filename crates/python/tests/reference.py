"""What transformers makes of some text: hidden states and predictions, of the fixtures' small random models.

    pip install torch transformers
    python crates/python/tests/reference.py     # writes reference.json
"""

import json
import pathlib

FILE = pathlib.Path(__file__).with_name("reference.json")
FIXTURES = pathlib.Path(__file__).parents[2] / "hub" / "tests" / "fixtures"
FAMILIES = ["bert", "distilbert", "roberta", "xlm-roberta"]
TEXTS = ["the cat", "Le chat.", "a mat , it"]
MASKED = "the {} on {}"
POSITIONS = 12


def compute():
    return {family: of_family(FIXTURES / family) for family in FAMILIES}


def of_family(folder):
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()

    def run(text):
        tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=POSITIONS)
        with torch.no_grad():
            return tokens["input_ids"][0], model(**tokens, output_hidden_states=True)

    states = {}
    for text in TEXTS:
        hidden = torch.stack(run(text)[1].hidden_states)[:, 0, 1:-1]
        states[text] = [[[round(float(x), 6) for x in row] for row in layer] for layer in hidden]
    text = MASKED.format(tokenizer.mask_token, tokenizer.mask_token)
    ids, output = run(text)
    places = []
    for row in (ids == tokenizer.mask_token_id).nonzero()[:, 0]:
        best = output.logits[0, row].softmax(dim=0).topk(3)
        places.append({"ids": best.indices.tolist(), "probabilities": [float(p) for p in best.values]})
    return {"states": states, "predictions": {text: places}}


if __name__ == "__main__":
    FILE.write_text(json.dumps(compute(), ensure_ascii=False) + "\n")
