"""Records inverse frequencies and attention factors of transformers' rope variants. Usage: python record.py"""

import json
import pathlib

import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

CASES = {
    "none": {"rope_type": "default", "rope_theta": 10000.0},
    "none_theta": {"rope_type": "default", "rope_theta": 500000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "yarn": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 2048},
    "yarn_factors": {
        "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 4096,
        "beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 0.75,
    },
}

cases = []
for name, parameters in CASES.items():
    config = LlamaConfig(hidden_size=512, num_attention_heads=8, head_dim=64, max_position_embeddings=16384,
                         rope_parameters=parameters)
    rope = LlamaRotaryEmbedding(config)
    cases.append({"name": name, "parameters": parameters, "head_dim": 64,
                  "inverse_frequencies": rope.inv_freq.tolist(), "attention_factor": float(rope.attention_scaling)})
out = {"transformers": transformers.__version__, "cases": cases}
pathlib.Path(__file__).with_name("expected.json").write_text(json.dumps(out) + "\n")
