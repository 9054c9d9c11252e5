"""The picture of distance maps takes the chunks of a config that has dual chunk attention."""

import json
from pathlib import Path

import pytest

from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.pages import scaling
from rope_viz.picture.picture_request import PictureRequest

# The published config of Qwen2.5 7B Instruct 1M.
QWEN_1M = json.loads(
    (Path(__file__).parents[1] / "cases" / "extend" / "09-qwen2.5-7b-1m.json").read_text(encoding="utf-8")
)


def picture_request(**changes):
    own = read_upload(json.dumps(QWEN_1M | changes))
    return PictureRequest(Subject(own.specs[""], own=own))


def test_own_chunks_are_those_of_the_config():
    request = picture_request()
    trained, chunks = scaling.find_chunks(request)
    assert (trained, chunks.size, chunks.local) == (262_144, 262_144, 8192)
    assert "This config has dual_chunk_attention_config" in scaling.maps(request).sentence


@pytest.mark.parametrize("chunks", [None, {}, {"chunk_size": -1}, {"chunk_size": True, "local_size": 1}, 7])
def test_chunks_that_cannot_be_read_are_left_out(chunks):
    assert scaling.find_chunks(picture_request(dual_chunk_attention_config=chunks)) is None
