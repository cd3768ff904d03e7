"""A look at hand-written prose for sentences that compare or give numbers: those are claims, or do not stand there.

Rendered blocks, code, addresses and claimed sentences are left out, and so are questions. What is found:

- On every page, in a sentence that names a method, mixing, a dataset or a score, or goes on about one with a pronoun:
  words with which the code never says what it does, in the docstrings and comments of `CODE`, and those of `VALUE`,
  which compare when they are said of a method. So the list of words that may stand is the code's own language, and a
  verb that nobody thought of ("outscores") is found because no docstring has it.
- On pages of results (README.md, and those in results/), in every sentence: the words and numbers of `STATES`.

The sentences of tests/scripts/claims/typed.yaml say what that is worth. Of 20 planted sentences 20 are found, of 60 by
which the rule was mended 52, of 20 that were written afterwards 17; of 30 plain ones 2 are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.claims.prose import BLOCK, SPAN, paragraphs
from scripts.driver.compose import CONFIG_DIR, names, part_file
from scripts.records.experiment import RESULTS

CODE = ("cmixup", "configs", "datasets", "models", "scripts", "tests")
TALK_OF_RESULTS = ("report", "claims", "study")  # rooms of scripts whose docstrings compare
LINK = re.compile(r"\]\([^)]*\)|`[^`]*`|<!--.*?-->|<[^>]*>|[\w./-]+\.(?:md|py|yaml|csv|jsonl?)\b|\w+_\w+", re.DOTALL)
ROW = re.compile(r"^\s*\|", re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n+)+")
STATES = re.compile(
    r"\d\.\d|%|±|\b(?:(?:better|worse|best|worst|lower|higher|lowest|highest|less|least|more|most|fewer|fewest|smaller"
    r"|smallest|larger|largest|closer|nearer|nearest|wider|narrower|stronger|weaker|easier|easiest|first|last|leads?|ahead"
    r"|behind|beats?|beaten|exceeds?|outperforms?|agrees?|differs?|differences?|reproduces?|reproduced|level|same as"
    r"|as good as|near|slightly|clearly|far|above|below|reached|reaches|helps|fails?|ranks?|dwarfs?|twice|half"
    r"|hardly|barely|almost|nearly|within)\b)",
    re.IGNORECASE,
)
VALUE = re.compile(
    r"\d\.\d|%|±|\b(?:\d{1,3} of (?:the )?\d{1,3}|\w+er than|(?:more|less|fewer) \w+ than|as \w+ as|on (?:a )?par"
    r"|no difference|most of|same as|best(?! (?:validation|weights|epoch))|better|worse|worst|good|bad|badly|well"
    r"|superior|inferior|low|lowers?|lowest|high|higher|highest|smaller|smallest|larger|largest|less|fewer|fewest"
    r"|closer|closest|wider|narrower|strong|stronger|weak|weaker|weakest|easier|hard|harder|fast|faster|fastest|slow"
    r"|slower|cheap|cheaper|cheapest|leads?|ahead|beats?|beaten|wins?|won|winners?|los(?:es?|ing)|ties?|edge|exceeds?"
    r"|tops?|bottom|drops?|dropped|falls?|rises?|grows?|shrinks?|gains?|benefits?|improvements?|advantages?|harms?"
    r"|gaps?|costs?|reduc(?:es?|ed)|decreases?|rais(?:es?|ed)|help(?:s|ed|ful)?|fails?|survives?|generalis(?:es?|ed)"
    r"|reach(?:es|ed)?|matters?|worth|work(?:s|ed)|should|twice|halves|halved|thirds?|quarters?|fifths?|tenths?"
    r"|double[sd]?|seldom|rarely|often|mostly|slightly|clearly|hardly|barely|almost|nearly)\b",
    re.IGNORECASE,
)
SCORES = r"RMSE|MSE|MAPE|errors?|gains?|benefits?|improvements?|advantages?|harm"
AGAIN = re.compile(
    r"[\W_]*(?:it|its|they|their|this|that|these|those|both|none|neither|nor|so|there|but|nothing)\b", re.I
)
ENDINGS = ("ings", "ing", "ies", "es", "ed", "s", "ly", "e")


def is_of_results(path: Path) -> bool:
    """Return whether a page is one of results."""
    return path == RESULTS.parent / "README.md" or path.parent == RESULTS


def stated(page: str, exceptions: Sequence[str], *, results: bool = True) -> Iterator[tuple[str, str]]:
    """Yield every hand-written sentence that compares or gives a number, with the words that say so.

    Args:
        page: its text.
        exceptions: pieces of text that may stand.
        results: whether it is a page of results.
    """
    for one, about in sentences(without(page, exceptions)):
        found = STATES.findall(one) if results else []
        if about:
            found += VALUE.findall(one) + foreign(one)
        if found:
            yield one, ", ".join(sorted({word.lower() for word in found}))


def sentences(page: str) -> Iterator[tuple[str, bool]]:
    """Yield every sentence and cell of a table that is written by hand, and whether it is about methods or scores."""
    for paragraph in paragraphs(INDENTED.sub("\n", BLOCK.sub("\n", page))):
        about = False
        plain = " ".join(LINK.sub(" ", SPAN.sub("\n", ROW.sub("\0", paragraph))).split())
        for one in re.split(r"(?<=[.!?])[)*_]*\s+|\s*\0\s*", plain):
            about = bool(subjects().search(one) or (about and AGAIN.match(one)))
            if one and not one.endswith("?"):
                yield one, about


def foreign(one: str) -> list[str]:
    """Return the words of a sentence that the code's docstrings and comments do not have in any form."""
    words = re.findall(r"[a-z]{2,}", subjects().sub(" ", one).lower())
    return [word for word in words if stem(word) not in vocabulary()]


@functools.cache
def subjects() -> re.Pattern[str]:
    """Return what finds the name of a method, mixing, a dataset or a score."""
    titles = {
        part
        for group in ("method", "dataset")
        for name in names(group)
        for part in str(part_file(group, name).get("title", name)).split(" + ")
    }
    among = "|".join(sorted(map(re.escape, titles), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w-])(?:{among})(?!\w)|\b(?:(?:un)?mix(?:ing|up|es|ed)?|methods?|{SCORES})\b", re.IGNORECASE
    )


@functools.cache
def vocabulary() -> frozenset[str]:
    """Return the stems of all words in docstrings and comments of the code, and of the names of its files."""
    found: set[str] = set()
    for room in CODE:
        for path in (CONFIG_DIR.parent / room).rglob("*"):
            found |= set(re.findall(r"[a-z]{2,}", path.relative_to(CONFIG_DIR.parent).as_posix()))
            if path.suffix in (".py", ".yaml") and path.parent.name not in TALK_OF_RESULTS:
                for text in re.findall(r'"""([\s\S]*?)"""|#(.*)', path.read_text()):
                    found |= set(re.findall(r"[a-z]{2,}", " ".join(text).lower()))
    return frozenset(map(stem, found))


def stem(word: str) -> str:
    """Return a word without the ending of its grammatical form: `mixes`, `mixed` and `mixing` are one."""
    return next((word.removesuffix(e) for e in ENDINGS if word.endswith(e) and len(word) - len(e) > 2), word)


def without(text: str, exceptions: Sequence[str]) -> str:
    """Return a text without the pieces that may stand, however their lines are broken."""
    for piece in exceptions:
        text = re.sub(r"\s+".join(map(re.escape, piece.split())), " ", text)
    return text
