"""The Python interface, as `import nonmember as nm` shows it: the command line's configs, called from a program."""
