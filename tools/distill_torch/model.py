"""A Llama in PyTorch: the target as MLX stores it, and students."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.bfloat16
Config = dict[str, Any]


class Layer(nn.Module):
    """One Llama layer with grouped queries. Rotary pairs are (i, i + half), which is faster here than side by side."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        hidden, ffn = config["hidden_size"], config["intermediate_size"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.eps = hidden // self.heads, config["rms_norm_eps"]
        self.input_layernorm = nn.Parameter(torch.ones(hidden))
        self.post_attention_layernorm = nn.Parameter(torch.ones(hidden))
        self.q_proj = nn.Linear(hidden, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, hidden, bias=False)
        self.gate_proj = nn.Linear(hidden, ffn, bias=False)
        self.up_proj = nn.Linear(hidden, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], cache: Tensor | None, at: int) -> Tensor:
        """x (B, L, hidden) at positions at … at+L-1; a cache (2, B, kv_heads, max, head_dim) is written in place."""
        b, n, _ = x.shape
        h = F.rms_norm(x, (x.shape[-1],), self.input_layernorm.to(x.dtype), self.eps)
        q = rotate(self.q_proj(h).view(b, n, self.heads, self.head_dim).transpose(1, 2), rope)
        k = rotate(self.k_proj(h).view(b, n, self.kv_heads, self.head_dim).transpose(1, 2), rope)
        v = self.v_proj(h).view(b, n, self.kv_heads, self.head_dim).transpose(1, 2)
        groups = self.heads // self.kv_heads
        if cache is not None:
            cache[0, :, :, at : at + n], cache[1, :, :, at : at + n] = k, v
        if cache is not None and n == 1:
            # The queries of one group see the same keys: one row each, no mask, nothing copied.
            grouped = q.reshape(b, self.kv_heads, groups, self.head_dim)
            out = F.scaled_dot_product_attention(grouped, cache[0, :, :, : at + 1], cache[1, :, :, : at + 1])
            out = out.reshape(b, 1, -1)
        else:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, -1)
        x = x + self.o_proj(out)
        h = F.rms_norm(x, (x.shape[-1],), self.post_attention_layernorm.to(x.dtype), self.eps)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(nn.Module):
    """Embedding, layers, norm; the head is the embedding."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.Parameter(torch.ones(config["hidden_size"]))

    def forward(self, ids: Tensor, caches: Tensor | None = None, at: int = 0) -> Tensor:
        """Hidden states (B, L, hidden) in half precision, normed, ready for the head."""
        x = F.embedding(ids, self.embed.weight).to(HALF)
        size = self.config["hidden_size"] // self.config["num_attention_heads"]
        turns = self.config["rope_theta"] ** (-torch.arange(0, size, 2, device=ids.device).float() / size)
        angles = torch.outer(torch.arange(at, at + ids.shape[1], device=ids.device).float(), turns)
        rope = angles.cos().to(HALF), angles.sin().to(HALF)
        for i, layer in enumerate(self.layers):
            x = layer(x, rope, None if caches is None else caches[i], at)
        return F.rms_norm(x, (x.shape[-1],), self.norm.to(x.dtype), self.config["rms_norm_eps"])

    def head(self, hidden: Tensor) -> Tensor:
        return hidden @ self.embed.weight.to(hidden.dtype).T


def rotate(x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (x[i], x[i + half]) by its position's angle."""
    cos, sin = rope
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def in_halves(weight: Tensor, head_dim: int, back: bool = False) -> Tensor:
    """Rows of q_proj or k_proj, from pairs side by side (`rope_traditional`) to pairs in halves, or back."""
    shape = (-1, 2, head_dim // 2) if back else (-1, head_dim // 2, 2)
    return weight.view(*shape, weight.shape[-1]).transpose(1, 2).reshape(weight.shape)


def names(model: Llama) -> Iterator[tuple[Tensor, str]]:
    """(parameter, its name in mlx-lm's Llama)."""
    yield model.embed.weight, "model.embed_tokens.weight"
    yield model.norm, "model.norm.weight"
    for i, layer in enumerate(model.layers):
        for name, parameter in layer.named_parameters():
            part = name.removesuffix(".weight")
            inside = {"g": "mlp.", "u": "mlp.", "d": "mlp.", "i": "", "p": ""}.get(part[0], "self_attn.")
            yield parameter, f"model.layers.{i}.{inside}{part}.weight"


@torch.no_grad()
def read_target(folder: Path) -> Llama:
    """An MLX folder, dequantised: MLX packs w = scale · code + bias, codes from the low bits of uint32 up."""
    config = json.loads((folder / "config.json").read_text())
    stored = load_file(folder / "model.safetensors")
    quantization = config["quantization"]
    model = Llama(config)
    for parameter, name in names(model):
        base = name.removesuffix(".weight")
        value = stored[name]
        if f"{base}.scales" in stored:
            bits = quantization.get(base, quantization)["bits"]
            words = value.to(torch.int64) & 0xFFFFFFFF
            codes = torch.stack([(words >> (bits * i)) & (2**bits - 1) for i in range(32 // bits)], -1).flatten(-2)
            scales, biases = stored[f"{base}.scales"].float(), stored[f"{base}.biases"].float()
            value = (codes.view(*scales.shape, -1).float() * scales[..., None] + biases[..., None]).flatten(-2)
        turned = base.endswith(("q_proj", "k_proj")) and config.get("rope_traditional")
        parameter.copy_(in_halves(value, model.layers[0].head_dim) if turned else value)
    return model.eval()
