"""Measurements of cards are files that another card's never replace."""

from dataclasses import replace

import pytest

from rope_viz.kernels.card_files import FOLDER, CardCase, CardMeasurement, CardTime, read_card, read_cards, write_card

WAYS = {"copy": CardTime(2.0, 1.0), "rope_viz": CardTime(2.5, 0.8, 1.6e-3, 40.0)}
CASE = CardCase("decode", "forward", "half", "bfloat16", [4, 1, 8, 64], None, 64, WAYS)
CARD = CardMeasurement("NVIDIA T0 (8 GB)", "2026-01-02", "abc", "2.13.0", "3.7.1", 9, ["other cards"], [CASE])


def test_written_measurement_is_read_back(tmp_path):
    path = write_card(CARD, tmp_path)
    assert path.name == "nvidia_t0_8_gb.json"
    assert read_card(path) == CARD
    later = replace(CARD, measured="2026-01-03")
    assert read_card(write_card(later, tmp_path)) == later


def test_file_of_another_card_is_not_replaced(tmp_path):
    path = write_card(CARD, tmp_path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"holds a measurement of NVIDIA T0 \(8 GB\)"):
        write_card(replace(CARD, device="NVIDIA T0 8-GB"), tmp_path)
    assert path.read_bytes() == before
    assert write_card(replace(CARD, device="NVIDIA T1"), tmp_path) != path


def test_shipped_cards_are_as_they_would_be_written(tmp_path):
    for name, card in read_cards().items():
        assert write_card(card, tmp_path).read_text() == (FOLDER / f"{name}.json").read_text()


def test_shipped_h200_has_the_cases_and_the_commit_of_its_table():
    cards = read_cards()
    assert {card.device for card in cards.values()} == {"NVIDIA H200"}
    shown = {name: (card.measured, card.commit, len(card.cases)) for name, card in cards.items()}
    assert shown == {
        "nvidia_h200": ("2026-11-27", "73d2ba41", 13),
        "nvidia_h200_2026_11_26": ("2026-11-26", "7d2dfc20", 13),
    }
    for name, share in (("nvidia_h200", 0.98), ("nvidia_h200_2026_11_26", 0.97)):
        headline = cards[name].cases[0]
        assert (headline.case, headline.direction, headline.pairing) == ("32 + 8 heads of 128", "forward", "half")
        assert round(headline.ways["rope_viz, out="].share_of_copy, 2) == share
    for card in cards.values():
        for case in card.cases:
            for way, time in case.ways.items():
                assert time.share_of_copy == pytest.approx(case.ways["copy"].us / time.us, abs=0.01)
                waited = card.commit == "7d2dfc20" and way.startswith("rope_viz, table")
                assert ("commit 7d2dfc20, waited" in way) == waited
