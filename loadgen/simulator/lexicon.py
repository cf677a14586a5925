"""The words that simulated answers are made of, most frequent first."""

import numpy as np

from loadgen.simulator.stream import Floats
from loadgen.simulator.tokens import encode

_FUNCTION_WORDS = (
    "the of and to a in is that it for with as on be are this by an at from or which can more not has when if than "
    "they but its you one will so also such may each other these into most some should only over there use first then"
)
_STEM_WORDS = (
    "act adapt answer arrang balanc basi begin benefit blend bring build calculat care carri caus chang charg check "
    "choos clear climb collect combin compar complet concern connect consider contain continu control cook cost count "
    "cover creat cultur cycl decid depend describ design detail develop differ direct discover distanc divid draw "
    "dream drift drive earn effect energ enter equal even exampl expand experienc explain explor express farm feel "
    "field figur fill find focus follow forest form found garden gather general gentl grow guid handl happen harbor "
    "harvest health help histor hold hunt idea imagin improv includ increas inform journey keep kind know land languag "
    "large laugh lay lead learn light limit link listen live local look machin manag mark market match material "
    "measur member mention method mix model moment mountain mov music name nation natur need notic number object "
    "offer often open order organ origin paint part pass pattern people perform period person pictur place plan plant "
    "play point policy popul power practic prepar present press problem process produc project protect provid public "
    "purpos quality quick rais rang reach reason receiv record reduc region relat remain remember render repair repeat "
    "report requir research respect rest result return river road rule sail scienc season select sense separat serv "
    "shap share shift short show signal simpl situat sound sourc spend stand start state station stor stori strong "
    "structur student study success suggest suppl support surfac system talk teach techniq test thought time tool "
    "town trade train travel treat trust turn type understand unit valley value vari view visit voic wait walk watch "
    "water weather weigh winter wonder word work world write year"
)
_FUNCTION = tuple(_FUNCTION_WORDS.split())
_ENDINGS = ("e", "ing", "ed", "er", "es", "ation", "ment", "able", "ly", "ive")


def _words() -> tuple[str, ...]:
    stems = _STEM_WORDS.split()
    return (*_FUNCTION, *(stem + ending for ending in _ENDINGS for stem in stems))


WORDS = _words()
WORD_TOKENS: tuple[tuple[int, ...], ...] = tuple(tuple(encode(" " + word)) for word in WORDS)
"""Token ids of each word with the space before it."""
FIRST_TOKENS: tuple[int, ...] = tuple(dict.fromkeys(tokens[0] for tokens in WORD_TOKENS))
"""Distinct tokens that can begin a word: what stands beside the likeliest token."""
SENTENCE_END: tuple[int, ...] = tuple(encode("."))
COMMA: tuple[int, ...] = tuple(encode(","))
PARAGRAPH: tuple[int, ...] = tuple(encode(".\n"))

_FUNCTION_SHARE = 0.4
_TOPIC_SHARE = 0.2
_PHRASE_SHARE = 0.8
# Zipf's law inside each class: the k-th word is drawn in proportion to 1/k (Zipf 1949; exponent 1 for English).
_FUNCTION_CDF: Floats = np.cumsum(1.0 / np.arange(2.0, len(_FUNCTION) + 2))
_FUNCTION_CDF /= _FUNCTION_CDF[-1]


def word_indices(classes: Floats, choices: Floats, topic: Floats) -> list[int]:
    """Indices into WORDS: `classes` picks function, topic or other word for each place, `choices` the word.

    `topic` (uniforms, any length) fixes the few content words that this answer comes back to, as answers do.
    """
    content_count = len(WORDS) - len(_FUNCTION)
    function = np.searchsorted(_FUNCTION_CDF, choices, side="right").clip(0, len(_FUNCTION) - 1)
    other = len(_FUNCTION) + (choices * content_count).astype(np.int64)
    topics = len(_FUNCTION) + (topic * content_count).astype(np.int64)
    place = (choices**2 * topics.size).astype(np.int64)
    mine = (classes >= _FUNCTION_SHARE) & (classes < _FUNCTION_SHARE + _TOPIC_SHARE)
    words = np.where(classes < _FUNCTION_SHARE, function, np.where(mine, topics[place], other))
    # A topic is a set phrase: its second word mostly follows the first.
    follows = mine[:-1] & (choices[:-1] ** 2 * topics.size % 1.0 < _PHRASE_SHARE)
    words[1:] = np.where(follows, topics[(place[:-1] + 1) % topics.size], words[1:])
    picked: list[int] = words.tolist()
    return picked
