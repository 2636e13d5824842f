"""`python -m habitus` is the command `habitus`."""

from habitus.cli import main

if __name__ == "__main__":
    main()
