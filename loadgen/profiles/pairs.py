"""Which public draft belongs to which target: vLLM takes a draft of another target and then drafts nonsense."""

import re

PAIRS: dict[str, tuple[str, ...]] = {
    # vLLM's documentation, features/speculative_decoding/eagle.
    "yuhuili/EAGLE-LLaMA3-Instruct-8B": ("meta-llama/Meta-Llama-3-8B-Instruct",),
    "yuhuili/EAGLE-LLaMA3.1-Instruct-8B": ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
    "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B": (
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
    ),
    "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3": (
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
    ),
    # The quick start of vllm-project/speculators; the checkpoint names its verifier in its own speculators_config.
    "RedHatAI/Qwen3-8B-speculator.eagle3": ("Qwen/Qwen3-8B",),
    # vLLM pull request 24322: the Qwen3 models share one vocabulary.
    "Qwen/Qwen3-0.6B": (
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-1.7B",
        "Qwen/Qwen3-4B",
        "Qwen/Qwen3-14B",
        "Qwen/Qwen3-32B",
        "Qwen/Qwen3-30B-A3B",
        "Qwen/Qwen3-235B-A22B",
    ),
    # vLLM's documentation, features/speculative_decoding/mtp: the layers stand in the target's own checkpoint.
    "XiaomiMiMo/MiMo-7B-Base": ("XiaomiMiMo/MiMo-7B-Base",),
}


def targets_of(draft: str | None) -> tuple[str, ...]:
    """The targets that this draft belongs to, the documented one first; empty if the pair is not known here."""
    return PAIRS.get(draft, ()) if draft else ()


def is_same_model(model: str, target: str) -> bool:
    """True if `model` names the target: by its id, as a local folder of that name, or as a variant of it.

    A variant has the target's name with an addition after a separator, such as `Qwen3-8B-FP8`: quantised targets keep
    the vocabulary and the hidden states a draft was trained on.
    """
    name, wanted = (re.split(r"[/\\]", text.rstrip("/\\"))[-1].lower() for text in (model, target))
    # A folder of the Hugging Face cache: models--Qwen--Qwen3-8B.
    name = name.rsplit("--", 1)[-1]
    if name == wanted:
        return True
    return bool(re.match(re.escape(wanted) + r"[-_.](fp8|int4|int8|awq|gptq|nvfp4|quantized|w\d+a\d+)", name))
