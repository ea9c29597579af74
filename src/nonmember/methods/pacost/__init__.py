"""PaCoST: is the target more confident in a text than in its paraphrase?"""
