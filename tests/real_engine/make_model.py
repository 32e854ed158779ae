"""Makes a tiny Llama of random weights, with a tokenizer and a chat template: a model that a real engine can serve.

    python tests/real_engine/make_model.py FOLDER     by a Python that has vLLM, for its transformers and torch

It answers nonsense, always the same: the weights are drawn under a seed. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

VOCABULARY = 512
LENGTH = 2_048
TEXTS = (
    "Hello, world! This tokenizer was trained on four sentences.",
    "The quick brown fox jumps over the lazy dog.",
    "def plan(profile): return changes",
    "A slice has hosts, a host has chips, and a chip has memory.",
)
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<turn>{{ message['role'] }}\n{{ message['content'] }}</turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
)


def make(folder: Path) -> None:
    """Write config, weights, tokenizer and chat template."""
    import torch  # type: ignore[import-not-found] # it is there where vLLM is
    from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found] # as above

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=LENGTH,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import (  # type: ignore[import-not-found] # as above
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<bos>", "<eos>", "<turn>", "</turn>"]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TEXTS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        model_max_length=LENGTH,
    )
    fast.chat_template = TEMPLATE
    return fast


if __name__ == "__main__":
    make(Path(sys.argv[1]))
