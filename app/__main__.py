"""`python -m app` is `vacancy`."""

from app.cli import main

if __name__ == "__main__":
    main()
