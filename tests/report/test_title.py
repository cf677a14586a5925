from loadgen.report.title import short_title


def test_a_short_answer_is_its_own_title() -> None:
    assert short_title("ngram pays off up to 12 concurrent requests (95 % CI 10 to 15).") == (
        "ngram pays off up to 12 concurrent requests (95 % CI 10 to 15)."
    )


def test_long_parentheses_are_cut_at_a_stop_and_short_ones_stay() -> None:
    answer = (
        "layer-draft on chat: best with K = 3 up to 15 concurrent requests (no verdict at 256); use static K = 3 "
        "(re-measured: not resolved: at 32 it lies near the margin of 10.0 %: 72 repeats in all would tell (about 58 "
        "min); longer windows (--window) need fewer)."
    )
    assert short_title(answer) == (
        "layer-draft on chat: best with K = 3 up to 15 concurrent requests (no verdict at 256); use static K = 3 "
        "(re-measured: not resolved)."
    )


def test_one_without_a_stop_is_left_out() -> None:
    answer = f"ngram pays off ({'word ' * 20}(inner, one) more) up to 12 concurrent requests on code-edit and on chat."
    assert short_title(answer) == "ngram pays off up to 12 concurrent requests on code-edit and on chat."
