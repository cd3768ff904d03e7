"""Of the published records the model says what is known: averaging networks helps, and ERM is no better than ERM."""

from dataclasses import replace

import pytest

from scripts.effects.verdicts import GAINS, LOSES
from scripts.protocol.protocols import Protocol2, load_protocol2
from scripts.study import effect_tables, evidence
from scripts.study.evidence import ENSEMBLE, Setting


@pytest.fixture(scope="module")
def rules() -> Protocol2:
    return load_protocol2()


@pytest.fixture(scope="module")
def random_setting(rules: Protocol2) -> Setting:
    """Return what is published of rows split at random."""
    only = replace(rules, conditions=tuple(each for each in rules.conditions if each.name == "random"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "load_protocol2", lambda: only)
        (found,) = evidence.study_settings()
    return found


def known_to_change_nothing(setting: Setting, rules: Protocol2) -> None:
    own = setting.against_itself(rules)
    assert own is not None
    assert (own.counts()[GAINS], own.counts()[LOSES], own.sided()) == (0, 0, (0, 0))
    assert own.overall.low < 0 < own.overall.high


def test_where_averaging_is_known_to_help_the_model_sees_it(random_setting: Setting, rules: Protocol2) -> None:
    own = random_setting.effect(ENSEMBLE, rules)
    assert own is not None
    below, above = own.sided()
    assert own.posterior.overall.below >= 0.999
    assert len(own.means) == 30
    assert below >= 15
    assert above == 0


def test_of_erm_against_itself_nothing_is_said(random_setting: Setting, rules: Protocol2) -> None:
    known_to_change_nothing(random_setting, rules)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_published_records_pass_the_negative_control_and_are_calibrated(rules: Protocol2) -> None:
    found = evidence.study_settings()
    for setting in found:
        known_to_change_nothing(setting, rules)
    *_, every = effect_tables.calibration_rows(found)
    for cell in every.strip("| ").split(" | ")[-2:]:
        n, ends = cell.partition(" of ")[0], cell.partition("(")[2].strip(")").split(" to ")
        assert int(ends[0]) <= int(n) <= int(ends[1])
