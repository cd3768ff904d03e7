"""Comparisons typed by hand: which are found, on which pages, and what plain prose is left alone."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from scripts.claims.check import FILE, read_claims
from scripts.claims.prose import RENDERED, prose_pages
from scripts.records.experiment import RESULTS
from tests.scripts.claims import typed
from tests.scripts.claims.typed import is_of_results, stated

ROOT = RESULTS.parent
SETS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("typed.yaml").read_text())
NOTES = read_claims(RESULTS / FILE)["exceptions"]
EXCEPTIONS = [e["text"] for e in NOTES]


def is_found(sentence: str) -> bool:
    return bool(list(stated(sentence, [], results=False)))


def test_no_page_states_anything_outside_what_is_rendered() -> None:
    assert all(e["reason"] for e in NOTES)
    texts = {path: path.read_text() for path in prose_pages()}
    found = [
        (str(path.relative_to(ROOT)), *one)
        for path, text in texts.items()
        for one in stated(text, EXCEPTIONS, results=is_of_results(path))
    ]
    assert found == [], "make it a claim of results/claims.yaml, or an exception with a reason, or use the code's words"
    plain = " ".join(" ".join(text.split()) for text in texts.values())
    assert [text for text in EXCEPTIONS if text not in plain] == [], "exceptions that no page needs"


def test_every_markdown_file_is_read_or_rendered() -> None:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("needs a checkout with git")
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    read = {str(path.relative_to(ROOT)) for path in prose_pages()}
    left = [name for name in listed.splitlines() if name not in read]
    assert [name for name in left if not any(Path(name).match(f"results/{one}") for one in RENDERED)] == []
    assert {"README.md", "CHANGELOG.md", "docs/index.md", "results/README.md", "results/study/README.md"} <= read


@pytest.mark.parametrize("sentence", SETS["planted"])
def test_a_planted_sentence_is_found(sentence: str) -> None:
    assert is_found(sentence)


def test_the_docstring_says_how_much_is_found() -> None:
    found = {name: sum(map(is_found, sentences)) for name, sentences in SETS.items()}
    sizes = {name: len(sentences) for name, sentences in SETS.items()}
    assert all(len(set(sentences)) == len(sentences) for sentences in SETS.values())
    expected = (
        f"Of {sizes['planted']} planted sentences {found['planted']} are found, of {sizes['held_out']} that were "
        f"written after the rule {found['held_out']}, and of {sizes['plain']} plain ones {found['plain']}."
    )
    assert found["held_out"] >= 0.75 * sizes["held_out"]
    assert found["plain"] <= 0.1 * sizes["plain"]
    assert expected in " ".join(str(typed.__doc__).split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("C-Mixup is better than ERM.", ["better, better than"]), ("The error is 2.5.", ["2.5"]),
        ("It costs 5 % of it.", ["%"]), ("ERM ranks\nfirst.", ["first, ranks"]), ("It takes ± a bit.", ["±"]),
        ("Ten seeds were trained.", []), ("`lower` is code, [better](worse.md) a link.", ["better"]),
        ("What may stand.", []), ('Rendered: <span id="x">is better by 2.5</span>.', []), ("```\nlower\n```\n", []),
        ("<!-- t:begin (python -m scripts.render) -->\n2.5 is best\n<!-- t:end -->", []), ("A first\ncommand.", []),
        ("Is C-Mixup better?", []), ("Code:\n\n    mixup beats 2.5\n\nand so on", []),
        ("ERM trains. It outscores all.", ["outscores"]), ("Rows are read. It outscores all.", []),
    ],
)  # fmt: skip
def test_a_sentence_typed_by_hand_is_found_on_a_page_of_results(text: str, words: list[str]) -> None:
    assert [found for _, found in stated(text, ["A first command"])] == words


def test_on_other_pages_a_sentence_must_be_about_methods_or_scores() -> None:
    assert not is_found("The first of two workers ends within 2.5 seconds, nearly twice.")
    assert is_found("The error is 2.75 there.")
    assert is_found("| dataset | |\n| --- | --- |\n| Airfoil | better |\n")


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Use C-Mixup here.", "use c-mixup"), ("There, do not take plain mixup.", "there, do not take plain mixup"),
        ("Use the loader of C-Mixup's example.", ""), ("To use C-Mixup, call the sampler.", ""), ("Use it.", ""),
        ("Two seeds draw Table 2.", "two seeds draw"), ("The authors mix.", "the authors mix"), ("Tables are it.", ""),
        ("The numbers stand in a file, with its seeds.", "the numbers stand"), ("Rows are read for the tables.", ""),
        ("Whatever they say, it is enough.", "enough"), ("A GPU gives what a CPU gives.", "gpu gives what a cpu"),
        ("Our runs are the paper's.", "our runs are the paper"), ("Here ours stand, and there the paper's.", ""),
    ],
)  # fmt: skip
def test_advice_what_results_do_and_words_of_judgement_are_found_on_every_page(sentence: str, words: str) -> None:
    assert ", ".join(found for _, found in stated(sentence, [], results=False)) == words
