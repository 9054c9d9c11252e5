"""Lines break at spaces, and between signs of scripts without them."""

from rope_viz.texts.line_breaks import count_letters, split_pieces, wrap_letters


def test_words_are_not_split():
    assert wrap_letters("At 131,072 tokens no pair", 12) == ["At 131,072", "tokens no", "pair"]
    assert wrap_letters("", 12) == [""]


def test_signs_break_anywhere_but_before_a_stop():
    lines = wrap_letters("模型可达 131,072 个 token。没有问题。", 12)
    assert lines == ["模型可达", "131,072 个", "token。没有", "问题。"]
    assert all(count_letters(line) <= 12 for line in lines)


def test_brackets_stay_with_what_they_hold():
    assert split_pieces("线性（位置）x") == ["线", "性", "（位", "置）", "x"]


def test_signs_are_two_letters_wide():
    assert (count_letters("θᵢ 8k"), count_letters("距离 8k")) == (5, 7)
