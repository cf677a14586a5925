"""Known failures of Docker and Compose by their own words, each with its cure."""

import re

_CURES: dict[str, str] = {
    r'could not select device driver "?nvidia|unknown or invalid runtime name: nvidia|nvidia-container-cli': (
        "Docker cannot give the GPU to a container: install the NVIDIA Container Toolkit, run `sudo nvidia-ctk runtime "
        "configure --runtime=docker` and restart Docker."
    ),
    r"Failed to initialize NVML|driver/library version mismatch": (
        "The NVIDIA driver and its library differ, as after an update: reboot, or load the driver again."
    ),
    r"port is already allocated|address already in use": "The port was taken meanwhile: choose another VLLM_PORT.",
    r"no space left on device": "The disk is full: `docker system df` shows what Docker holds.",
    r"manifest unknown|pull access denied|manifest for .* not found": (
        "The image is not in its registry: check VLLM_IMAGE, or build it (docs/stack.md says how)."
    ),
    r"could not find an available, non-overlapping IPv4 address pool": (
        "Docker has no addresses left for another network: `docker network prune`."
    ),
    r"401 Client Error|gated repo|GatedRepoError": (
        "The model is gated: accept its licence on Hugging Face and export HF_TOKEN."
    ),
    r"[Cc]annot connect to the Docker daemon|permission denied while trying to connect": (
        "Docker does not answer: start it, or let your user use it (group docker)."
    ),
    r"Free memory on device .* is less than desired|CUDA out of memory|No available memory for the cache blocks": (
        "The GPU's memory does not suffice: take a smaller MODEL, MAX_MODEL_LEN or MAX_NUM_SEQS (env/ has examples)."
    ),
}


def cure(text: str) -> str:
    """The cure for the first known failure in a log or an error text; empty if none is known."""
    return next((sentence for pattern, sentence in _CURES.items() if re.search(pattern, text)), "")
