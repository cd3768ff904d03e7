"""A look at hand-written prose for sentences that compare or give numbers: those are claims, or do not stand there.

Rendered blocks, code, addresses and claimed sentences are left out, and so are questions. What is found:

- On every page, in every sentence: the words of `EVIDENCE`, with which results are judged ("confirm", "enough"); advice
  to use or leave a method, which is an imperative with its name (`ADVICE`); and what authors, seeds or tables do, which
  is any verb behind them but those of `RESULT_DOES`.
- On every page, in a sentence that names a method, mixing, a dataset, a score or one of `OTHERS`, or goes on about one
  with a pronoun: words with which the code never says what it does, in the docstrings and comments of `CODE`, and those
  of `VALUE`, which compare when they are said of a method. So the list of words that may stand is the code's own
  language, and a verb that nobody thought of ("outscores") is found because no docstring has it.
- On pages of results (README.md, and those in results/), in every sentence: the words and numbers of `STATES`.

The sentences of tests/scripts/claims/typed.yaml say what that is worth. Of 20 planted sentences 20 are found, of 30
that were written after the rule 25, and of 30 plain ones 0. Common words that judge nothing by themselves are missed
("makes the same mistakes").
"""

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.claims.prose import BLOCK, SPAN, split_paragraphs
from scripts.config.compose import CONFIG_DIR, option_names, part_file
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
    r"|most of|same as|best(?! (?:validation|weights|epoch))|worst|good|bad|badly|well|low|lowers?|lowest|high|higher"
    r"|highest|smaller|smallest|larger|largest|less|fewer|fewest|closer|closest|wider|narrower|strong|stronger|weak"
    r"|weaker|weakest|easier|hard|harder|fast|faster|fastest|slow|slower|cheap|cheaper|cheapest|leads?|ahead|behind"
    r"|winners?|los(?:es?|ing|t)|ties?|edges?|exceeds?|tops|on top|bottom|drops?|dropped|falls?|rises?|grows?|shrinks?"
    r"|gains?|benefits?|harms?|gaps?|costs?|reduc(?:es?|ed)|decreases?|rais(?:es?|ed)|help(?:s|ed|ful)?|fails?|survives?"
    r"|generalis(?:es?|ed)|reach(?:es|ed)?|matters?|worth|work(?:s|ed)|should|twice|halves|halved|a third|thirds"
    r"|quarters?|fifths?|tenths?|double[sd]?|times the|seldom|rarely|often|mostly|slightly|clearly|hardly|barely|almost"
    r"|nearly|hundred|thousand|(?:noisy|skewed) labels|are noisy|(?:with|without|needs) noise|tails?|outliers|accurate"
    r"|safe(?:st|r)?|always|everywhere|nobody|equivalent|exchanged|match(?:es|ed)?|final|sound|needs no|no need"
    r"|what you (?:want|need)|method to|order of (?:the )?methods|comes? to|breaks? down|(?:told|falls?|tell .*) apart"
    r"|(?:acts?|looks?|behaves?) like|(?:takes?|keeps?|makes?|catch(?:es)?|comes?|turns?|blows?) (?:over|up|out)"
    r"|(?:if|when|once) (?:your |there |training )?(?:labels|rows|tables?|data|noise|(?:is|are) ))\b",
    re.IGNORECASE,
)
EVIDENCE = re.compile(
    r"\b(?:better(?! of)|worse|superior|inferior|beats?|beaten|wins?|won|outperforms?|strongest|hardest|easiest|safest"
    r"|advantages?|improvements?|no difference|no change|trust|rel(?:y|ies) on|robust|reliabl[ey]|useless|worthless"
    r"|suffic\w+|enough|confirm\w*|contradict\w*|settle[sd]?|prov(?:es?|ed|en)|evidence|doubt|conclu\w+|convinc\w+"
    r"|significan\w+|decisive|exclude[sd]?|replicated|reproduced|(?:dis)?agree[sd]?|last digit|not depend|identical"
    r"|interchangeable|rivals?|dominat\w+|profits?|pays?|paid|earns?|deserves?|suffers?|suits|solved|influence\w*"
    r"|(?<!no )effects?|story|whenever|as soon as|right choice|rule of thumb|is all that"
    r"|(?:carr(?:y|ies)|holds?|bears?|speaks?) (?:over|up|out)|ours?\b(?! beside| and)[^,;:.]*\b(?:paper|authors)"
    r"|(?:paper|authors)\b[^,;:.]*\bours?|GPUs?\b[^,;:.]*\bCPUs?|CPUs?\b[^,;:.]*\bGPUs?)\b",
    re.IGNORECASE,
)
ADVICE = (
    r"^\W*(?:[^,:]*, )?(?:(?:always|never|better|rather|do not|don't|not) )*(?:use|choose|prefer|pick|take|try|trust|go"
    r"|switch|turn|start|reach|leave|skip|replace|add|stick|stay|keep|default|opt|expect|drop|do|combine)"
    r"(?: [\w-]+){0,3} "
)
RESULT_DOES = re.compile(
    r"^\W*(?:(?:of|the|our|these|those|all|both|most|many|few|no|two|three|four|five|ten|more|authors'|paper's) ){0,3}"
    r"(?:authors|papers?|(?:Table|Figure)s? \d|numbers|digits|seeds|intervals|results|tables|splits) "
    r"(?!(?:is|are|was|were|has|have|in|of|with|and|or|that|which|for|from|by|on|at|as|to|than|may|can|must|beside|not"
    r"|it|the|an?|comes?|go|whose|also|holds?|names?|lists?|gives?)\b)[a-z]\w*",
    re.IGNORECASE,
)
OTHERS = r"CatBoost|LightGBM|XGBoost|forests|authors?|papers?|(?:Table|Figure)s? \d|seeds|intervals|bandwidths?"
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
        found += EVIDENCE.findall(one) + RESULT_DOES.findall(one) + advice().findall(one)
        if about:
            found += VALUE.findall(one) + foreign(one)
        if found:
            yield one, ", ".join(sorted({word.lower() for word in found}))


def sentences(page: str) -> Iterator[tuple[str, bool]]:
    """Yield every sentence and cell of a table that is written by hand, and whether it is about methods or scores."""
    for paragraph in split_paragraphs(INDENTED.sub("\n", BLOCK.sub("\n", page))):
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
    """Return what finds the name of a method, mixing, a dataset, a score, the paper or an estimator."""
    nouns = rf"(?:un)?mix(?:ing|up|es|ed)?|methods?|{SCORES}|{OTHERS}"
    return re.compile(rf"(?<![\w-])(?:{titles('method', 'dataset')})(?!\w)|\b(?:{nouns})\b", re.IGNORECASE)


@functools.cache
def advice() -> re.Pattern[str]:
    """Return what finds an imperative to use or leave a method."""
    return re.compile(rf"{ADVICE}(?:{titles('method')}|mixing|seeds|bandwidth alone)(?![\w'])", re.IGNORECASE)


def titles(*groups: str) -> str:
    """Return an expression for the names of what is configured in some groups, in pages' words."""
    found = {str(part_file(group, name).get("title", name)) for group in groups for name in option_names(group)}
    parts = {part for title in found for part in title.split(" + ")}
    return "|".join(sorted(map(re.escape, parts), key=len, reverse=True))


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
