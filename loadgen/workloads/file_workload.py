"""Prompts out of a file, as they stand there; made unique only when that is asked for."""

from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.errors import UsageError
from loadgen.workloads.base import Message, Prompt, PromptRequest, TokenCounter
from loadgen.workloads.formats.common import FilePrompt, FilePrompts
from loadgen.workloads.randomness import code_of, seeded
from loadgen.workloads.text_workload import prompt_id, request_key

_WARMUP_SHARE = 0.2
_CHARS_PER_TOKEN = 4.0


@dataclass(frozen=True)
class FileOptions:
    """How a file's prompts are used; written behind the path: `prompts.jsonl?salt&repeat`."""

    salt: bool = False
    """A line with a code of its own in front of every prompt: no two share a cache block."""
    repeat: bool = False
    """Prompts may come more than once in a cell."""
    file_format: str | None = None

    @staticmethod
    def parse(text: str) -> "FileOptions":
        """The options of `salt&repeat&format=spec-bench`; UsageError for an unknown one."""
        options = FileOptions()
        for part in filter(None, text.split("&")):
            name, _, value = part.partition("=")
            if name == "format":
                options = replace(options, file_format=value)
            elif name == "salt":
                options = replace(options, salt=True)
            elif name == "repeat":
                options = replace(options, repeat=True)
            else:
                raise UsageError(f"a workload file takes no option {name!r}; take salt, repeat or format=NAME")
        return options


class FileWorkload:
    """The prompts of one file in an order that follows from the seed.

    Warm-ups and probes take theirs from a fifth of the file that is never measured. Without a salt, levels and repeats
    share prompts: a cell may ask for no more than there are, unless repeats are allowed.
    """

    default_max_tokens = 128

    def __init__(self, path: Path, found: FilePrompts, options: FileOptions) -> None:
        self.name = path.stem
        self.description = f"{len(found.prompts)} prompts of {path.name}"
        self._prompts = found.prompts
        self._options = options
        characters = sum(len(_text_of(prompt)) for prompt in found.prompts)
        self.default_input_tokens = max(1, round(characters / len(found.prompts) / _CHARS_PER_TOKEN))
        self.warnings = found.warnings + (() if options.salt else (_shared(path),))

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts; UsageError if the file has too few of them or another length is asked for."""
        if request.input_tokens not in (None, self.default_input_tokens):
            raise UsageError(f"the prompts of {self.name} have the length that they have; leave out the input length")
        pool = self._pool(request)
        if request.count > len(pool) and not (self._options.salt or self._options.repeat):
            kind = "measuring" if request.purpose == "measure" else "warm-up"
            raise UsageError(
                f"{self.name} has {len(pool)} prompts for {kind}, but {request.count} are needed; give a larger file "
                "or add ?salt (each made unique) or ?repeat (the prefix cache will answer) behind its path"
            )
        return tuple(self._prompt(request, pool[index % len(pool)], index) for index in range(request.count))

    def _pool(self, request: PromptRequest) -> list[FilePrompt]:
        """The part of the file for this purpose, shuffled for this cell alone."""
        shuffled = list(self._prompts)
        seeded("split", request.seed).shuffle(shuffled)
        kept = round(len(shuffled) * _WARMUP_SHARE)
        if kept:
            shuffled = shuffled[kept:] if request.purpose == "measure" else shuffled[:kept]
        seeded("order", *request_key(request, self.name, 0)).shuffle(shuffled)
        return shuffled

    def _prompt(self, request: PromptRequest, source: FilePrompt, index: int) -> Prompt:
        salted = _salted(source, code_of(*request_key(request, self.name, index))) if self._options.salt else source
        return Prompt(
            prompt_id=prompt_id(request, self.name, self.default_input_tokens, index),
            max_tokens=request.max_tokens or source.max_tokens or self.default_max_tokens,
            messages=salted.messages,
            text=salted.text,
            token_ids=salted.token_ids,
        )


def unique_share(prompts: tuple[Prompt, ...]) -> float:
    """Share of prompts that are unlike all before them: 1.0 = no prompt comes twice; 0 for none at all."""
    different = {(prompt.messages, prompt.text, prompt.token_ids) for prompt in prompts}
    return len(different) / len(prompts) if prompts else 0.0


def _salted(source: FilePrompt, code: str) -> FilePrompt:
    if source.messages:
        first, *rest = source.messages
        return replace(source, messages=(Message(first.role, f"{code}\n{first.content}"), *rest))
    if source.text is not None:
        return replace(source, text=f"{code}\n{source.text}")
    raise UsageError("token ids cannot be salted without the tokenizer; leave out ?salt")


def _text_of(prompt: FilePrompt) -> str:
    if prompt.messages:
        return "".join(message.content for message in prompt.messages)
    return prompt.text or "x" * round(_CHARS_PER_TOKEN * len(prompt.token_ids or ()))


def _shared(path: Path) -> str:
    return (
        f"prompts of {path.name} recur over levels and repeats, so the prefix cache may answer; "
        f"write {path.name}?salt to make each one unique"
    )
