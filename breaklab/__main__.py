"""Run the command line as ``python -m breaklab``."""

from breaklab.cli.app import main

if __name__ == "__main__":
    main()
