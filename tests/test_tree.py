from collections import OrderedDict, UserDict, namedtuple
from types import MappingProxyType

from cmixup.tree import leaves, map_leaves


def test_forms_stay() -> None:
    point = namedtuple("point", "x y")
    tree = {"a": [1, (2, point(3, 4))], "b": OrderedDict(c=5), "d": UserDict(e=6), "f": MappingProxyType({"g": 7})}
    mapped = map_leaves(lambda _, leaf: 10 * leaf, "tree", tree)
    assert mapped["a"] == [10, (20, point(30, 40))]
    assert isinstance(mapped["a"][1][1], point)
    assert mapped["b"] == OrderedDict(c=50)
    assert isinstance(mapped["b"], OrderedDict)
    assert isinstance(mapped["d"], UserDict)
    assert mapped["d"]["e"] == 60
    assert tree["d"]["e"] == 6  # type: ignore[index]
    assert mapped["f"] == {"g": 70}
    assert leaves(tree) == [1, 2, 3, 4, 5, 6, 7]


def test_leaves_know_where_they_stand() -> None:
    met = []
    map_leaves(lambda path, *_: met.append(path), "batch", {"a": (1, 2)}, {"a": [3, 4]})
    assert met == ["batch['a'][0]", "batch['a'][1]"]


def test_entries_can_be_kept() -> None:
    kept = [object()]
    mapped = map_leaves(lambda _, leaf: -leaf, "batch", {"a": 1, "id": kept, "b": {"id": kept}}, keep=("id",))
    assert mapped == {"a": -1, "id": kept, "b": {"id": kept}}
    by_place = map_leaves(lambda _, leaf: -leaf, "batch", {"a": (1, 2), "b": [3, (4, 5)]}, keep=(("a", 1), ("b", 1, 0)))
    assert by_place == {"a": (-1, 2), "b": [-3, (4, -5)]}
