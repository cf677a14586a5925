"""The fields of `speculative-config` per method: what vLLM takes, checked before any server starts."""

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

PositiveInt = Annotated[int, Field(ge=1, lt=1 << 31, strict=True)]
Drafts = Annotated[int, Field(ge=1, le=1024, strict=True)]
"""K: far more than any method drafts, and so few that a table of them fits."""
Rate = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]
"""Strict, so that true is no 1.0; a whole number passes."""


class MethodConfig(BaseModel):
    """What every method takes."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    k_default: ClassVar[int | None] = None
    """vLLM's K when none is given; None if one must be given."""

    method: str
    num_speculative_tokens: Drafts
    num_speculative_tokens_per_batch_size: list[Any] | tuple[Any, ...] | None = None
    rejection_sample_method: Literal["standard", "synthetic", "block", "strict", "probabilistic"] | None = None
    synthetic_acceptance_rates: list[Rate] | None = None
    synthetic_acceptance_length: Annotated[float, Field(strict=True)] | None = None

    @model_validator(mode="after")
    def _synthetic_fits(self) -> "MethodConfig":
        """By vLLM's `_resolve_synthetic_acceptance_rates`."""
        rates, length, k = (
            self.synthetic_acceptance_rates,
            self.synthetic_acceptance_length,
            self.num_speculative_tokens,
        )
        if self.rejection_sample_method != "synthetic":
            if rates is not None or length is not None:
                raise ValueError(
                    "synthetic acceptance needs rejection_sample_method: synthetic; add it or remove the other"
                )
            return self
        if (rates is None) == (length is None):
            raise ValueError(
                "rejection_sample_method synthetic needs exactly one of synthetic_acceptance_rates and "
                "synthetic_acceptance_length"
            )
        if rates is not None and len(rates) != k:
            raise ValueError(
                f"synthetic_acceptance_rates has {len(rates)} entries; give one for each of the "
                f"{k} num_speculative_tokens"
            )
        if rates is not None and any(later > earlier for earlier, later in pairwise(rates)):
            raise ValueError(
                "synthetic_acceptance_rates rise; a later draft cannot be accepted more often, so sort them"
            )
        if length is not None and not 1.0 <= length <= k + 1:
            raise ValueError(f"synthetic_acceptance_length is {length}; it must lie in 1 to {k + 1} (K + 1)")
        return self


class NgramConfig(MethodConfig):
    """`ngram` and `ngram_gpu`: drafts by looking the last words up in the request's own context."""

    prompt_lookup_min: PositiveInt | None = None
    prompt_lookup_max: PositiveInt | None = None

    @model_validator(mode="after")
    def _window(self) -> "NgramConfig":
        low, high = self.prompt_lookup_min, self.prompt_lookup_max
        if low is not None and high is not None and low > high:
            raise ValueError(f"prompt_lookup_min {low} is above prompt_lookup_max {high}; swap them")
        return self


class SuffixConfig(MethodConfig):
    """`suffix`: drafts from suffix trees over this and earlier requests (Arctic Inference)."""

    k_default: ClassVar[int | None] = 24

    num_speculative_tokens: Drafts = 24
    suffix_decoding_max_tree_depth: PositiveInt | None = None
    suffix_decoding_max_cached_requests: Annotated[int, Field(ge=0, lt=1 << 31, strict=True)] | None = None
    suffix_decoding_max_spec_factor: Annotated[float, Field(ge=0, strict=True)] | None = None
    suffix_decoding_min_token_prob: Rate | None = None


class ModelDraftConfig(MethodConfig):
    """Every method whose drafts come from a network."""

    model: Annotated[str, Field(min_length=1)]
    draft_tensor_parallel_size: PositiveInt | None = None
    draft_sample_method: Literal["greedy", "probabilistic"] | None = None
    quantization: str | None = None
    moe_backend: str | None = None
    attention_backend: str | None = None
    kv_cache_dtype: str | None = None
    max_model_len: PositiveInt | None = None
    revision: str | None = None
    code_revision: str | None = None
    draft_load_config: dict[str, Any] | None = None
    use_local_argmax_reduction: bool | None = None


class DraftModelConfig(ModelDraftConfig):
    """`draft_model`: a small model of the same vocabulary."""

    parallel_drafting: bool | None = None
    use_heterogeneous_vocab: bool | None = None
    disable_padded_drafter_batch: bool | None = None


class EagleConfig(ModelDraftConfig):
    """`eagle` and `eagle3`: a head that reads the target's hidden states."""

    parallel_drafting: bool | None = None
    disable_padded_drafter_batch: bool | None = None
    disable_eagle_block_drop: bool | None = None


class MtpConfig(ModelDraftConfig):
    """`mtp`: the target's own layers for the next tokens; `model` may be left out."""

    model: Annotated[str, Field(min_length=1)] | None = None  # type: ignore[assignment]  # optional for this method alone
    index_share_for_mtp_iteration: bool | None = None
    disable_padded_drafter_batch: bool | None = None
    disable_eagle_block_drop: bool | None = None


class DflashConfig(ModelDraftConfig):
    """`dflash`: a block of drafts at once."""

    disable_eagle_block_drop: bool | None = None


class DsparkConfig(ModelDraftConfig):
    """`dspark`: a block of drafts with a confidence; its weights may stand in the target's checkpoint."""

    model: Annotated[str, Field(min_length=1)] | None = None  # type: ignore[assignment]  # may ship inside the target
    enable_adaptive_verification: bool | None = None
    disable_eagle_block_drop: bool | None = None


class CustomClassConfig(MethodConfig):
    """`custom_class`: a proposer of one's own, by its dotted import path."""

    model: Annotated[str, Field(min_length=1)]


METHODS: dict[str, type[MethodConfig]] = {
    "ngram": NgramConfig,
    "ngram_gpu": NgramConfig,
    "suffix": SuffixConfig,
    "draft_model": DraftModelConfig,
    "eagle": EagleConfig,
    "eagle3": EagleConfig,
    "mtp": MtpConfig,
    "medusa": ModelDraftConfig,
    "dflash": DflashConfig,
    "dspark": DsparkConfig,
    "custom_class": CustomClassConfig,
}

UNUSABLE_METHODS: dict[str, str] = {
    "mlp_speculator": "vLLM's V1 engine cannot load it; train an EAGLE-3 head instead and use method eagle3",
    "extract_hidden_states": "it writes training data and speeds nothing up; use one of the drafting methods",
}


def methods_with_field(field: str) -> list[str]:
    """The methods that take this field, in the table's order."""
    return [name for name, schema in METHODS.items() if field in schema.model_fields]


def all_fields() -> set[str]:
    """Every field that some method takes."""
    return {field for schema in METHODS.values() for field in schema.model_fields}
