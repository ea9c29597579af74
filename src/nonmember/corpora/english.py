"""English word lists for `names.ByRules`: context of names, and words that are neither names nor nouns."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES = _words("""
    Mr Mrs Ms Miss Mister Messrs Dr Doctor Prof Professor Sir Lady Lord Madam Madame Mademoiselle Monsieur
    Master Captain Colonel Major General Lieutenant Sergeant Inspector Aunt Uncle Cousin Father Mother Brother
    Sister Reverend Rev St Saint King Queen Prince Princess Count Countess Duke Duchess Baron Baroness Judge
    President
""")
SAYING = _words("""
    said says say asked asks replied replies cried cries answered answers thought thinks exclaimed whispered
    muttered murmured shouted called added began continued observed remarked returned repeated inquired laughed
    smiled nodded sighed growled screamed told knew felt wanted looked stared frowned shrugged grinned
""")
DETERMINERS = _words("""
    the a an this that these those my your his her its our their some any every each no another such one two
    three
""")
FUNCTION_WORDS = _words("""
    i you he she it we they me him us them who whom which what whose where when why how there here then than as
    if and or but nor for so yet because though although while until unless since after before of in on at by to
    from with without within into onto upon over under above below between among through during against about
    around across along behind beside beyond toward towards off out up down away back again am is are was were
    be been being have has had having do does did done can could will would shall should may might must not
    never always often too also very just only even still now once already almost quite rather all both more
    most much many few less least own same other said says came went got made took gave let seemed looked
    amongst
""")
# Common English first names; those that are words as well are left to the other signs.
FIRST_NAMES = _words("""
    Adam Agnes Albert Alexander Alfred Alice Amelia Amy Andrew Anna Anne Annie Anthony Arthur Barbara Beatrice
    Ben Benjamin Bernard Bertha Bob Caroline Catherine Cecilia Charles Charlotte Christopher Clara Daniel David
    Deborah Diana Donald Dorothy Edgar Edith Edmund Edward Eleanor Eliza Elizabeth Ella Ellen Emily Emma Eric
    Ernest Esther Ethel Eva Fanny Florence Frances Francis Frank Fred Frederick George Gerald Gilbert Hannah
    Harold Harriet Harry Helen Henry Herbert Hilda Hugh Isabel Isabella Jacob James Jane Janet Jean Jennifer
    Jessica Jim Joan John Jonathan Joseph Josephine Joshua Julia Julian Karen Kate Katherine Laura Lawrence
    Leonard Lewis Linda Louis Louisa Lucas Lucy Lydia Mabel Margaret Maria Marianne Marie Martha Martin Mary
    Matthew Maurice Michael Mildred Nancy Nathan Nathaniel Nicholas Nora Oliver Oscar Patricia Patrick Paul
    Peter Philip Phoebe Rachel Ralph Raymond Rebecca Richard Robert Roger Ronald Rosa Rosamond Rupert Ruth Sally
    Samuel Sarah Sebastian Sheila Simon Sophia Sophie Stephen Susan Sylvia Theodore Thomas Tom Ursula Victoria
    Vincent Virginia Walter William Winifred
""")
