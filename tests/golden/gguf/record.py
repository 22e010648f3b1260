"""Records what gguf-py and transformers make of quantized tensors.

python record.py blocks          -> <type>.blocks, <type>.f32: random blocks and their values by gguf.quants.dequantize
python record.py model FILE.gguf -> smollm2.json: shape and hash of every tensor of the model as transformers loads it

Recorded with gguf 0.19.0, transformers 5.23.0, numpy 2.4.6.
"""

import json
import pathlib
import sys

import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
# Elements of a block, and the byte offsets of the half-precision scales in it.
TYPES = {
    "Q4_0": (32, [0]),
    "Q4_1": (32, [0, 2]),
    "Q5_0": (32, [0]),
    "Q5_1": (32, [0, 2]),
    "Q8_0": (32, [0]),
    "Q4_K": (256, [0, 2]),
    "Q5_K": (256, [0, 2]),
    "Q6_K": (256, [208]),
}


def record_blocks():
    random = np.random.default_rng(20240607)
    for name, (elements, scales) in TYPES.items():
        kind = gguf.GGMLQuantizationType[name]
        block_bytes = gguf.GGML_QUANT_SIZES[kind][1]
        blocks = random.integers(0, 256, (2048 // elements, block_bytes), dtype=np.uint8)
        for offset in scales:
            halves = random.normal(0, 1, len(blocks)).astype(np.float16)
            halves[:3] = [0.0, -0.0, 6e-8]  # zeros and the smallest subnormal number
            blocks[:, offset : offset + 2] = halves[:, None].view(np.uint8)
        values = gguf.quants.dequantize(blocks, kind)
        blocks.tofile(HERE / f"{name}.blocks")
        values.astype("<f4").tofile(HERE / f"{name}.f32")


def tensor_hash(values):
    """Sum of (2 i + 1) times the bits of element i, modulo 2^64."""
    bits = values.reshape(-1).view(np.uint32).astype(np.uint64)
    weights = np.arange(len(bits), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return int((bits * weights).sum(dtype=np.uint64))


def record_model(path):
    import torch
    from transformers import AutoModelForCausalLM

    path = pathlib.Path(path)
    model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
    tensors = {
        name: {"shape": list(tensor.shape), "hash": str(tensor_hash(tensor.contiguous().numpy()))}
        for name, tensor in model.state_dict().items()
    }
    lines = [f"{json.dumps(name)}: {json.dumps(tensor)}" for name, tensor in tensors.items()]
    (HERE / "smollm2.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if sys.argv[1] == "blocks":
    record_blocks()
else:
    record_model(sys.argv[2])
