"""The command line: `python -m rope_viz`, installed as `rope-viz`."""

from rope_viz.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
