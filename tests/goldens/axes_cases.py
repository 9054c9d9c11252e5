"""What the scripts of axes_more.json share: the fixed vector that every class turns, and the list of cases."""

import numpy as np
import torch


def vector(dim: int) -> torch.Tensor:
    """The fixed vector, as the test makes it."""
    return torch.tensor(np.cos(1.7 * np.arange(dim) + 0.3), dtype=torch.float32)


def rounded(table: torch.Tensor) -> list:
    return [[round(float(v), 6) for v in row] for row in table.reshape(-1, table.shape[-1])]


CASES: list = []


def add(family: str, source: str, config: dict, positions, out, **more) -> None:
    positions = torch.as_tensor(positions, dtype=torch.float64).tolist()
    CASES.append({"family": family, "source": source, "config": config, "positions": positions, "out": out, **more})


THW = torch.tensor([[3.0, 3.0, 3.0], [57.0, 61.0, 58.0], [0.0, 11.0, 40.0], [120.0, 7.0, 33.0]])


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)
