"""Names of files, folders and columns work as typed, and a word that Hydra needs stays Hydra's.

Every command reads them by `hydra_words` and `typed_path`: every option has every name, and two commands run with some.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from cmixup.errors import InputError
from datasets.no2 import NO2
from scripts import predict, train
from scripts.config.arguments import parse_args
from scripts.config.compose import compose_train, normalize_arguments, override_word
from scripts.config.words import as_typed, hydra_words, parse_word
from scripts.driver.job import Job, plan_job

NAMES = (
    "two words", "my list (2)", "prüf", "preis in €", "price=net", "my price ($)", "it's", 'say "hi"', "~home", "a,b",
    "x\\y", "end\\", "a\\'b", "[mm]", "[a", "{k}", "${x}", "a${b}c$", "😀 smile", "👨‍👩‍👧", "#1!", "<a|b>",
    "007", "1e3", "null", "名前", "a:b;c", "*?", "-dash", "+plus", "@at & co", "'quoted'", '"dq"', "glob(*)", "é" * 90,
)  # fmt: skip
ROWS = 40
LISTS = ("target", "categorical", "drop", "keep", "missing")
LITERAL = {"null": ("None",), "007": ("7",), "1e3": ("1000.0",), "true": ("True",)}  # of an option that is no name


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_table(path: Path, target: str) -> None:
    rng = np.random.default_rng(0)
    values = {"a": rng.normal(size=ROWS).round(3), target: np.arange(ROWS) % 7 + 0.5, "kind": np.arange(ROWS) % 3}
    pd.DataFrame(values).to_csv(path, index=False)


def composed_by_train(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[DictConfig]:
    """Return the configurations that `python -m scripts.train` trains, which it does not."""
    seen: list[DictConfig] = []
    monkeypatch.setattr(train, "run_training", seen.append)
    monkeypatch.setattr("hydra._internal.logging_config.configure_logging", lambda _: None)  # this process goes on
    monkeypatch.setattr("sys.argv", ["scripts.train", *normalize_arguments(words)])
    GlobalHydra.instance().clear()
    train.main()
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_train_takes_a_name_as_typed(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(here / f"{name}.csv", name)
    words = [f"table={name}.csv", f"target={name}", f"out={name}", "method=erm", "logger=none"]
    by_hydra = name in ("preis in €", "a,b", "it's", "~home", "end\\", "${x}", "👨‍👩‍👧")  # which takes longer
    cfg = composed_by_train(monkeypatch, *words)[0] if by_hydra else compose_train(words)
    job = plan_job(cfg)
    dataset: Any = job.dataset
    assert job.config["dataset"]["path"] == str(here / f"{name}.csv")
    assert job.config["out"] in (name, name[1:-1])  # quotes around the whole mean the name inside, if nothing is there
    assert dataset.load(0).extras
    assert dataset.targets == (name,)
    assert all(len(part.encode()) <= 255 for part in job.folder.parts)  # a disk takes no longer name


@pytest.mark.parametrize(
    "option", ["out", "model.weights", *(f"dataset.{key}" for key in LISTS), "dataset.group", "dataset.folder"]
)
def test_every_option_of_names_takes_them(option: str) -> None:
    """As typed, in a list, and as the words that a command prints or stores."""
    for name in NAMES:
        if (
            option == "dataset.folder" and "${" in name
        ):  # an option that is not known to take names may refer to another
            continue
        item = f'"{name}"' if "," in name else name
        lists = [f"[{item}]", f"[ {item} , a]"] if option.endswith(LISTS) else []
        for typed in (name, *lists, override_word(option, name).partition("=")[2]):
            (word,) = hydra_words([f"{option}={typed}"])
            assert hydra_words([word]) == [word]
            cfg = OmegaConf.create({"value": parse_word(word).value()})
            value = OmegaConf.to_container(cfg, resolve=True)["value"]  # type: ignore[call-overload, index]
            spelt = (name, name[1:-1]) if name[0] in "'\"[" else (name,)  # which the columns of a table tell apart
            assert str(value[0] if isinstance(value, list) else value) in (*spelt, *LITERAL.get(name, ()))


def test_columns_are_those_of_the_table_where_quotes_or_brackets_are_their_own(here: Path) -> None:
    columns = ("[mm]", "'quoted'", '"dq"', "a,b", "b", "c")
    pd.DataFrame({name: np.arange(ROWS) % (k + 3) for k, name in enumerate(columns)}).to_csv("t.csv", index=False)
    words = ["table=t.csv", "target=[mm]", "dataset.group='quoted'", 'dataset.drop=["dq",b]', "dataset.categorical=a,b"]
    dataset: Any = plan_job(compose_train(words)).dataset
    assert list(dataset.table.features) == ["a,b", "c"]
    assert (dataset.targets, dataset.group, dataset.drop) == (("[mm]",), "'quoted'", ('"dq"', "b"))
    with pytest.raises(
        InputError, match=r"drop 'b,c' is no column of .*; of several make a list, dataset.drop=\[a,b\]"
    ):
        plan_job(compose_train([*words[:2], "dataset.drop=b,c"])).dataset.load(0)
    with pytest.raises(InputError, match="drop 'abc' is no column of"):  # nor b, which it has in the middle
        plan_job(compose_train([*words[:2], "dataset.drop=abc"])).dataset.load(0)


@pytest.mark.parametrize("name", ["my list (2)", "preis in €", "a,b", "-dash", "${x}", "é" * 90])
def test_predict_takes_it(name: str, no2: tuple[Job, Path], here: Path) -> None:
    shutil.copytree(no2[1] / "seed=3", here / name / "seed=0")
    rows = pd.DataFrame(np.ones((2, 7)), columns=list(NO2.columns))
    rows.assign(**{name.replace(",", ";"): ["p", "q"], "b": [3, 4]}).to_csv(f"{name}.csv", index=False)
    ids = f"{name.replace(',', ';')},b"
    predict.main([f"run={name}/seed=0", f"table={name}.csv", f"id={ids}", f"out={name}/{name}.out"])
    made = pd.read_csv(here / name / f"{name}.out", keep_default_na=False)
    assert list(made) == [*ids.split(","), "log_no2"]
    assert made.iloc[:, 0].tolist() == ["p", "q"]
    if not name.startswith("-"):
        predict.main([f"{name}/seed=0", f"table={name}.csv"])


def test_names_in_a_sweep(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("my prüf.csv", "b [1].csv"):
        write_table(here / name, "preis in €")
    write_table(here / "c, d.csv", "y")
    (alone,) = composed_by_train(monkeypatch, "-m", "table=c, d.csv", "target=y", "out=x")  # a name that is there
    assert alone.dataset.path == "c, d.csv"
    words = ["-m", "table=my prüf.csv,b [1].csv", "target=preis in €,'a'", "out=ergebnis ü", "method=erm"]
    configs = composed_by_train(monkeypatch, *words)
    assert [(cfg.dataset.path, cfg.dataset.target) for cfg in configs] == [
        ("my prüf.csv", "preis in €"), ("my prüf.csv", "a"), ("b [1].csv", "preis in €"), ("b [1].csv", "a"),
    ]  # fmt: skip
    assert {cfg.out for cfg in configs} == {"ergebnis ü"}
    assert (here / "ergebnis ü" / "sweeps").is_dir()


def test_the_users_folder_is_meant_by_a_wave(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    write_table(here / "t.csv", "y")
    config = plan_job(compose_train(["table=~/t.csv", "target=y", "out=~/x"])).config
    assert (config["dataset"]["path"], config["out"]) == (str(here / "t.csv"), str(here / "x"))
    assert parse_args(["out=~/x"], {"out": ""}).out == here / "x"
    monkeypatch.setenv("CMIXUP_OUT", "~/y")
    assert compose_train(normalize_arguments(["logger=none"])).out == str(parse_args([], {}).out) == str(here / "y")


@pytest.mark.parametrize(
    ("typed", "read"), [("dataset.drop=[a,b]", ["a", "b"]),
    ("dataset.drop=[größe (m),'x,y', \"z\"]", ["größe (m)", "x,y", "z"]), ('dataset.target="my price"', "my price"),
    ("out=${oc.env:CMIXUP_NOWHERE,there}", "${oc.env:CMIXUP_NOWHERE,there}"), ("dataset.max_rows=30", 30),
    ("dataset.together=true", True), ("dataset.drop=null", None), ("dataset.scaling=minmax", "minmax"),
    ("dataset.group=a b", "a b"), ("dataset.drop=[size [m],tax]", ["size [m]", "tax"]),
    ("dataset.drop=['a [m','b']", ["a [m", "b"])],
)  # fmt: skip
def test_what_hydra_is_needed_for_stays_its_own(typed: str, read: Any) -> None:
    (word,) = hydra_words([typed])
    assert parse_word(word).value() == read
    assert hydra_words([word]) == [word]
    if typed.endswith("]"):
        assert hydra_words(["-m", typed]) == ["-m", word]  # a list is one value of a sweep


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("experiment=prüf", "Hydra cannot read ü here: put the value into quotes 'experiment=\"prüf\"'"),
        ("method.layer=a(b)", "Hydra cannot read ( here: put"),
        ("model.hidden=[2", "Hydra cannot read [ here: close it, or put the value into quotes"),
        ("method=erm,", "Hydra cannot read , here: put the value into quotes 'method="),
        ("dataset.folds=1,2", "several values are a sweep, which needs -m: python -m scripts.train -m dataset.folds"),
        ("method.bandwidth=glob(*)", "several values are a sweep, which needs -m"),
        ("-m method.bandwidth=glob(*)", "glob chooses files of a group"),
    ],
)
def test_a_value_that_hydra_cannot_read_names_sign_and_advice(word: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        normalize_arguments(word.split())
    assert str(caught.value).startswith(f"{word.removeprefix('-m ')}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "message", "expected"),
    [
        ("table=a.csv target=b", "path: no such file a.csv", "table: no such file a.csv"),
        ("table=a.csv", "dataset.path=a.csv method=erm dataset=csv: no", "table=a.csv method=erm: no"),
        (
            "dataset=csv dataset.path=a.csv",
            "dataset.path=a.csv dataset=csv: path",
            "dataset.path=a.csv dataset=csv: path",
        ),
    ],
)
def test_an_error_names_the_words_that_were_typed(typed: str, message: str, expected: str) -> None:
    normalize_arguments(typed.split())
    assert as_typed(message) == expected


@pytest.mark.parametrize(
    ("words", "named"),
    [("target=a", "target is no option of dataset airfoil"), ("table=a.csv window=3", "window is no")],
)
def test_a_word_for_other_data_is_refused_by_its_own_name(words: str, named: str) -> None:
    with pytest.raises(InputError, match=f"{named}.*data of your own are named by table=, images=, series=, arrays="):
        compose_train(normalize_arguments(words.split()))


SHORT = {
    "table=my.csv target=y": "dataset.path=my.csv dataset.target=y dataset=csv",
    "images=a labels=l.csv target=[x,y]": "dataset.path=a dataset.labels=l.csv dataset.target=[x,y] dataset=images",
    "series=load.csv time=day window=168": "dataset.path=load.csv dataset.time=day dataset.window=168 dataset=series",
    "arrays=data.npz": "dataset.path=data.npz dataset=arrays",
    "x=a.npy y=b.npy": "dataset.x=a.npy dataset.y=b.npy dataset=arrays",
    "dataset=rdataset target=y": "dataset=rdataset dataset.target=y",
}  # fmt: skip


def test_signs_stand_anywhere_and_come_first() -> None:
    words = ["table=my.csv", "target=y", "method=erm,cmixup"]
    read = ["dataset.path=my.csv", "dataset.target=y", "method=erm,cmixup", "dataset=csv"]
    for k in range(4):
        assert hydra_words([*words[:k], "-m", *words[k:]]) == ["-m", *read]
        assert hydra_words(["-m", *words[:k], "--cfg", "job", *words[k:]]) == ["-m", "--cfg", "job", *read]
    with pytest.raises(InputError, match=r"^window=12,24: several values .* -m window=12,24$"):
        hydra_words(["series=a.csv", "window=12,24"])


@pytest.mark.parametrize("words", SHORT)
def test_a_short_word_is_an_option_and_chooses_the_dataset(words: str) -> None:
    assert hydra_words(words.split()) == SHORT[words].split()
    if "=my.csv" in words or "=load.csv" in words:
        with pytest.raises(InputError, match=r"data must be of one kind, got .*= and images="):
            hydra_words([*words.split(), "images=photos"])
