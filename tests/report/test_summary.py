"""summary.json follows its published schema and never holds NaN."""

import json
import math
from typing import Any

import jsonschema
import numpy as np
import pytest

from loadgen.analysis.model import Findings
from loadgen.report.summary import dumps, json_schema, plain, summary
from loadgen.store.model import Manifest


def strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check(text: str) -> Any:
    data = strictly(text)
    jsonschema.Draft202012Validator(json_schema()).validate(data)
    return data


def test_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_summary_has_the_published_fields(findings: Findings, manifest: Manifest) -> None:
    data = check(dumps(summary(findings, manifest)))
    assert data["schema"] == 1
    assert data["simulated"] is True
    found = data["conditions"][0]["profiles"]["ngram"]
    assert found["levels"][0]["speedup"] == pytest.approx(1.42)
    assert found["levels"][0]["ci95"] == pytest.approx([1.39, 1.45])
    assert found["break_even"]["output_tokens_per_s"]["status"] == "found"
    assert found["break_even"]["output_tokens_per_s"]["crossings"][0]["direction"] == "down"
    assert data["recommendation"]["value"] == [[1, 8, 4], [9, 13, 2], [14, 256, 0]]
    assert data["conditions"][1]["profiles"]["ngram"]["levels"][-1]["checks"][0]["cure"]


def test_c36_degenerate_findings_hold_no_nan(degenerate: dict[str, Findings], manifest: Manifest) -> None:
    for name, found in degenerate.items():
        data = check(dumps(summary(found, manifest)))
        assert data["interrupted"] is (name == "interrupted")
    odd = check(dumps(summary(degenerate["not finite"], manifest)))
    level = odd["conditions"][0]["profiles"]["ngram"]["levels"][0]
    assert level["speedup"] is None
    assert level["ci95"] == [None, None]


def test_c36_dumps_turns_every_non_finite_number_into_null() -> None:
    text = dumps({"a": math.nan, "b": [math.inf, -math.inf, np.float64("nan")], "c": np.int64(3), "d": np.bool_(1)})
    assert strictly(text) == {"a": None, "b": [None, None, None], "c": 3, "d": True}


def test_text_that_is_no_utf8_can_be_written() -> None:
    assert dumps("cut \ud83d").encode()
    assert plain(object()).startswith("<object")


def test_hostile_text_stays_valid(hostile_findings: Findings, manifest: Manifest) -> None:
    data = check(dumps(summary(hostile_findings, manifest)))
    assert data["answer"] == hostile_findings.answer


@pytest.mark.parametrize("field", ["schema", "engine", "simulated", "conditions", "recommendation"])
def test_schema_refuses_a_missing_field(field: str, findings: Findings, manifest: Manifest) -> None:
    data = summary(findings, manifest)
    del data[field]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema())


def test_schema_refuses_wrong_values(findings: Findings, manifest: Manifest) -> None:
    data = summary(findings, manifest)
    turn = data["conditions"][0]["profiles"]["ngram"]["break_even"]["output_tokens_per_s"]
    for status, crossings in (("perhaps", turn["crossings"]), ("found", [])):
        broken = turn | {"status": status, "crossings": crossings}
        data["conditions"][0]["profiles"]["ngram"]["break_even"]["output_tokens_per_s"] = broken
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data, json_schema())
