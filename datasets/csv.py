"""A table of your own, from a CSV file, packed or not, or a Parquet, Feather or Excel file."""

from datasets.common.table.text_file import TextFile
from datasets.common.table.user import Source, UserTable


class Csv(TextFile, UserTable):
    """Any table in a file: `dataset=csv dataset.path=my.csv dataset.target=price`.

    Origin: the user's. y: the columns named by `target`, in their own units. x: the other columns as numbers.
    Shapes: x (N, features), y (N, targets); split 60 / 20 / 20 anew for every run seed, by whole domains if `group`
    names a column (worst domain: the test domain with the highest RMSE).
    Licence: the user's to know. Citation: the user's to give.

    The arguments are those of `TextFile` and `UserTable`.
    """

    name = "csv"
    unit = "the table's own"
    reads_text = True
    baselines = True

    def read(self) -> Source:
        """Read the file; columns that hold categories or groups are read as text."""
        example = "dataset=csv dataset.path=my.csv dataset.target=price"
        return self.read_file((*self.categorical, self.group), example)
