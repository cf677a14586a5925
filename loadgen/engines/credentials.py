"""Keys and tokens: where they may stand, and how a command is shown without them."""

import os
import re

from loadgen.errors import UsageError

_OPTION = re.compile(r"key|token$|password|secret")
_REFUSED = re.compile(r"--?(api[-_]key|hf[-_]token|\S*(password|secret)\S*)(=|$)", re.IGNORECASE)
"""Of vLLM's options these hold a secret itself; `--ssl-keyfile` names a file."""
_VARIABLE = re.compile(r"(TOKEN|KEY|PASSWORD|PASSWD|SECRET|CREDENTIALS)$", re.IGNORECASE)

_SHORTEST = 6


def without_secrets(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command as it may be shown and stored: values of options that carry keys and tokens are starred out."""
    out: list[str] = []
    hide = False
    for word in command:
        option, equals, _ = word.partition("=")
        secret = option.startswith("--") and bool(_OPTION.search(option))
        out.append("***" if hide and not word.startswith("-") else f"{option}=***" if secret and equals else word)
        hide = (secret and not equals) or (hide and not word.startswith("-"))
    return tuple(out)


def refuse_secrets(words: tuple[str, ...], option: str) -> None:
    """UsageError if a word would put a key or token into the run folder and into what `ps` shows to everyone."""
    for word in words:
        name, equals, _ = word.partition("=")
        variable = "VLLM_API_KEY" if "key" in name.lower() else "HF_TOKEN" if "token" in name.lower() else None
        if _REFUSED.match(word):
            cure = f"export {variable} instead" if variable else "export it instead"
            raise UsageError(f"{option} {name} would show a secret in ps and store it with the run; {cure}.")
        if equals and _VARIABLE.search(name) and not name.startswith("-"):
            raise UsageError(
                f"{option} {name}=… would show a secret in ps and store it with the run; export {name} instead."
            )


def server_variables(texts: tuple[str, ...]) -> dict[str, str]:
    """Name → value from `NAME=VALUE`, or from `NAME` alone, which takes the value of this process' environment, so
    that it stands in no command line and in no run folder. UsageError for a secret with its value, or an unset name.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"--server-env {text!r} is no setting; write it like NAME=VALUE.")
        if equals and _VARIABLE.search(name):
            raise UsageError(
                f"--server-env {name}=… would show a secret in ps and store it with the run; "
                f"export {name}, and write --server-env {name}."
            )
        if not equals and name not in os.environ:
            raise UsageError(f"--server-env {name} takes the value of your environment, where it is not set; set it.")
        found[name] = value if equals else os.environ[name]
    return found


def key_variable(engine: str) -> str:
    """The environment variable whose key a server takes: one that an engine starts is locked by VLLM_API_KEY, if that
    is set; any other asks for OPENAI_API_KEY.
    """
    return "VLLM_API_KEY" if engine in ("process", "docker") and os.environ.get("VLLM_API_KEY") else "OPENAI_API_KEY"


def masked(text: str) -> str:
    """The text without the keys and tokens of this process' environment: some servers repeat them in their errors."""
    for name in ("OPENAI_API_KEY", "VLLM_API_KEY", "HF_TOKEN"):
        value = os.environ.get(name, "")
        # A shorter one is none, and would star out words.
        if len(value) >= _SHORTEST:
            text = text.replace(value, "***")
    return text
