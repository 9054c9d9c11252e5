"""Soak test: users who come, drag, leave and are replaced; memory, open sessions and latency by minute.

Run by hand: python benchmarks/soak.py --minutes 30 --users 5. Starts its own server; users behave as in load.py, each
stays for some minutes and is then replaced; at the end all have left. Prints a line a minute, then compares memory and
median times of the second half with the first. Streamlit keeps a closed session for two minutes; after that its session
count must equal the number of users. With --cache 8 the server caches 8 MiB of pictures instead of 64: that is full
after minutes, so later growth has another cause.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import time
import urllib.request

from checkouts import ROOT, read_checkout
from load import FRAME_RATE, Measurements, Target, read_memory, running_server, simulate_user

STAYS = (60.0, 240.0)
# Runs `streamlit` with another limit of the picture cache, taken from the first argument.
SMALL_CACHE = "import sys; from rope_viz.serving.picture_route import GALLERY; GALLERY.most = int(sys.argv.pop(1)); "
SMALL_CACHE += "from streamlit.web.cli import main; main()"


def count_sessions(url: str) -> int:
    """Return the number of connected sessions from the server's metrics."""
    with urllib.request.urlopen(f"{url}/_stcore/metrics", timeout=10) as answer:
        found = re.search(r"^active_sessions (\d+)", answer.read().decode(), re.MULTILINE)
    if found is None:
        raise ValueError("this Streamlit does not count its sessions at /_stcore/metrics")
    return int(found[1])


async def simulate_users(
    target: Target, options: argparse.Namespace, minutes: list[Measurements], end: float, chance: random.Random
) -> None:
    """Simulate one user after another until the end; measurements are added to the last of `seen`."""
    while (now := time.monotonic()) < end:
        minute = minutes[-1]
        until = min(end, now + chance.uniform(*STAYS))
        # A user stays for many minutes, so switch to the current minute's record.
        while (now := time.monotonic()) < until:
            minute = minutes[-1]
            await simulate_user(target, options, minute, min(until, now + 60.0), chance)


async def soak(target: Target, options: argparse.Namespace) -> None:
    """Simulate all users and print a line a minute."""
    url, pid = target.url, target.pid
    assert pid is not None, "a soaked server is started here"
    end = time.monotonic() + 60.0 * options.minutes
    minutes, megabytes = [Measurements()], []
    all_users = asyncio.gather(
        *(simulate_users(target, options, minutes, end, random.Random(i)) for i in range(options.users))
    )
    print("minute   memory   sessions      runs p50    pictures p50   dragged p50   errors", flush=True)
    while (left := end - time.monotonic()) > 2.0:
        minute = minutes[-1]
        await asyncio.wait([all_users], timeout=min(60.0, left - 1.0))
        megabytes.append(read_memory(pid))
        medians = (median_ms(minute.first + minute.runs), median_ms(minute.pictures), median_ms(minute.dragged))
        numbers = "".join(f"{f'{value:.0f} ms' if value is not None else '':>14s}" for value in medians)
        open_now = await asyncio.to_thread(count_sessions, url)
        print(
            f"{len(megabytes):6d}{megabytes[-1]:6.0f} MB{open_now:9d} {numbers}{sum(minute.errors.values()):9d}",
            flush=True,
        )
        minutes.append(Measurements())
    await all_users
    await asyncio.sleep(options.after)
    print(f"all have left, {options.after:.0f} s ago: {count_sessions(url)} sessions, {read_memory(pid):.0f} MB")
    half = max(1, len(megabytes) // 2)
    for name, first, second in (
        ("memory", megabytes[:half], megabytes[half:]),
        *(
            (
                kind,
                *([1e3 * s for one in part for s in getattr(one, kind)] for part in (minutes[:half], minutes[half:])),
            )
            for kind in ("runs", "pictures", "dragged")
        ),
    ):
        if first and second:
            was, now = statistics.median(first), statistics.median(second)
            print(f"{name:10s} {was:7.1f} in the first half, {now:7.1f} in the second: {now / was:.2f} times")
    errors = [text for one in minutes for text in one.errors.elements()]
    print(f"errors {len(errors)} {sorted(set(errors))[:5]}")


def median_ms(seconds: list[float]) -> float | None:
    """Return the median in milliseconds, None for no values."""
    return 1e3 * statistics.median(seconds) if seconds else None


def main() -> None:
    """Soak a server started here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--users", type=int, default=5)
    parser.add_argument("--drag", type=float, default=0.5, help="share of the times that a user drags a knob")
    parser.add_argument("--pages", default="", help="a,b,…; default: all")
    parser.add_argument("--cache", type=int, default=0, help="MiB of cached pictures; default: as the server sets it")
    parser.add_argument("--after", type=float, default=150.0, help="seconds to wait once all have left")
    parser.add_argument("--smallest", action="store_true", help="one user for a few seconds")
    options = parser.parse_args()
    if options.smallest:
        options.minutes, options.users, options.after, options.pages = 0.1, 1, 0.0, "scaling"
    options.seconds = 4.0  # users begin within a second of each other
    options.rate = FRAME_RATE
    program = ("-c", SMALL_CACHE, str(options.cache << 20)) if options.cache else ("-m", "streamlit")
    checkout = read_checkout(ROOT)
    pages = tuple(options.pages.split(",") if options.pages else checkout.pages)
    with running_server(program=program) as server:
        asyncio.run(soak(Target(server.url, server.process.pid, checkout, pages), options))


if __name__ == "__main__":
    main()
