"""`python -m nonmember.cli`."""

from nonmember.cli.main import main

if __name__ == "__main__":
    main()
