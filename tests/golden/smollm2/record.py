"""Records greedy tokens of SmolLM2-135M-Instruct from transformers, float32, for tests/model.

Usage: record_smollm2.py MODEL.gguf OUT.json     (needs transformers 5.23.0, torch 2.11.0, gguf, jinja2)
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

CHATS = [
    "What is the capital of France?",
    "Name three primary colours.",
    "Write one sentence about the sea.",
    "How many days are in a leap year?",
    "Explain what a compiler does, in two sentences.",
    "Translate 'good morning' into Spanish.",
    "Give me a short recipe for pancakes.",
    "Who wrote 'Romeo and Juliet'?",
    "What is 12 + 30?",
    "List the planets of the solar system.",
    "Why is the sky blue?",
    "Write a haiku about autumn leaves.",
    "What does HTTP stand for?",
    "Suggest a name for a small black cat.",
    "Describe a naïve café owner in one line.",
    "What is the boiling point of water in Celsius?",
]
SYSTEM = [
    [{"role": "system", "content": "You answer in one word."}, {"role": "user", "content": "Is fire hot?"}],
    [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello! How can I help?"},
     {"role": "user", "content": "Tell me a fact about bees."}],
]
PLAIN = ["The quick brown fox", "def fibonacci(n):\n"]


def main(gguf_path, out_path):
    folder, name = os.path.split(os.path.abspath(gguf_path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    # The converter loses the pre-tokenizer that splits off single digits.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    items = []
    jobs = [[{"role": "user", "content": c}] for c in CHATS] + SYSTEM + PLAIN
    for job in jobs:
        text = job if isinstance(job, str) else tokenizer.apply_chat_template(
            job, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens, logprobs, margin = [], [], float("inf")
        with torch.inference_mode():
            out = model(torch.tensor([ids]), use_cache=True)
            for _ in range(48):
                logits = out.logits[0, -1].float()
                top = logits.topk(2).values
                margin = min(margin, float(top[0] - top[1]))
                token = int(logits.argmax())
                tokens.append(token)
                logprobs.append(round(float(torch.log_softmax(logits, -1)[token]), 5))
                out = model(torch.tensor([[token]]), past_key_values=out.past_key_values, use_cache=True)
        items.append({("prompt" if isinstance(job, str) else "messages"): job, "text": text, "prompt_ids": ids,
                      "greedy": tokens, "logprobs": logprobs, "min_top2_margin": round(margin, 5)})
        print(len(ids), round(margin, 5), repr(tokenizer.decode(tokens)[:90]), flush=True)
    with open(out_path, "w", encoding="utf-8") as f:
        json.dump({"model": "SmolLM2-135M-Instruct Q4_1, dequantized", "transformers": transformers.__version__,
                   "torch": torch.__version__, "dtype": "float32", "eos_disabled": True, "max_new_tokens": 48,
                   "items": items}, f, ensure_ascii=False)


main(*sys.argv[1:])
