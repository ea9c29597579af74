"""A model that others have trained, and continuations of it in which documents were planted."""
