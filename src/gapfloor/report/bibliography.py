"""The works that a methods paragraph may cite, and their BibTeX entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import gapfloor


@dataclass(frozen=True, kw_only=True)
class BibEntry:
    """One work."""

    kind: str
    """BibTeX's entry type."""
    short: str
    """How a text without BibTeX names it, e.g. "Holm, 1979"; empty where the text does so anyway."""
    fields: Mapping[str, str] = field(default_factory=dict)


def _article(
    short: str, author: str, title: str, journal: str, volume: int, pages: str, year: int
) -> BibEntry:
    found = {"author": author, "title": title, "journal": journal, "volume": str(volume), "pages": pages}
    return BibEntry(kind="article", short=short, fields={**found, "year": str(year)})


#: By BibTeX key.
WORKS: Mapping[str, BibEntry] = MappingProxyType(
    {
        "gapfloor": BibEntry(
            kind="misc",
            short="",  # the sentence that cites it names it
            fields={
                "title": "{gapfloor}: what a generalization gap measures",
                "note": f"Software, version {gapfloor.__version__}",
            },
        ),
        "cobbe2020": BibEntry(
            kind="inproceedings",
            short="Cobbe et al., 2020",
            fields={
                "author": "Cobbe, Karl and Hesse, Christopher and Hilton, Jacob and Schulman, John",
                "title": "Leveraging Procedural Generation to Benchmark Reinforcement Learning",
                "booktitle": "Proceedings of the 37th International Conference on Machine Learning",
                "series": "Proceedings of Machine Learning Research",
                "volume": "119",
                "pages": "2048--2056",
                "year": "2020",
            },
        ),
        "welch1947": _article(
            "Welch, 1947",
            "Welch, B. L.",
            "The generalization of `{Student}'s' problem when several different population variances are involved",
            "Biometrika",
            34,
            "28--35",
            1947,
        ),
        "holm1979": _article(
            "Holm, 1979",
            "Holm, Sture",
            "A simple sequentially rejective multiple test procedure",
            "Scandinavian Journal of Statistics",
            6,
            "65--70",
            1979,
        ),
        "schuirmann1987": _article(
            "Schuirmann, 1987",
            "Schuirmann, Donald J.",
            "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence "
            "of average bioavailability",
            "Journal of Pharmacokinetics and Biopharmaceutics",
            15,
            "657--680",
            1987,
        ),
        "fisher1935": _article(
            "Fisher, 1935",
            "Fisher, Ronald A.",
            "The fiducial argument in statistical inference",
            "Annals of Eugenics",
            6,
            "391--398",
            1935,
        ),
        "clopper1934": _article(
            "Clopper and Pearson, 1934",
            "Clopper, Charles J. and Pearson, Egon S.",
            "The use of confidence or fiducial limits illustrated in the case of the binomial",
            "Biometrika",
            26,
            "404--413",
            1934,
        ),
        "johnson1978": _article(
            "Johnson, 1978",
            "Johnson, Norman J.",
            "Modified t tests and confidence intervals for asymmetrical populations",
            "Journal of the American Statistical Association",
            73,
            "536--544",
            1978,
        ),
        "cornfield1956": _article(
            "Cornfield and Tukey, 1956",
            "Cornfield, Jerome and Tukey, John W.",
            "Average values of mean squares in factorials",
            "Annals of Mathematical Statistics",
            27,
            "907--949",
            1956,
        ),
        "obrien1979": _article(
            "O'Brien and Fleming, 1979",
            "O'Brien, Peter C. and Fleming, Thomas R.",
            "A multiple testing procedure for clinical trials",
            "Biometrics",
            35,
            "549--556",
            1979,
        ),
        "lan1983": _article(
            "Lan and DeMets, 1983",
            "Lan, K. K. Gordon and DeMets, David L.",
            "Discrete sequential boundaries for clinical trials",
            "Biometrika",
            70,
            "659--663",
            1983,
        ),
        "fisher1932": BibEntry(
            kind="book",
            short="Fisher, 1932",
            fields={
                "author": "Fisher, Ronald A.",
                "title": "Statistical Methods for Research Workers",
                "edition": "4th",
                "publisher": "Oliver and Boyd",
                "year": "1932",
            },
        ),
        "efron1993": BibEntry(
            kind="book",
            short="Efron and Tibshirani, 1993",
            fields={
                "author": "Efron, Bradley and Tibshirani, Robert J.",
                "title": "An Introduction to the Bootstrap",
                "publisher": "Chapman \\& Hall",
                "year": "1993",
            },
        ),
    }
)


def to_bibtex(keys: Iterable[str]) -> str:
    """The entries of these works, in the order of their keys."""
    return "\n".join(_entry(key, WORKS[key]) for key in sorted(set(keys)))


def _entry(key: str, work: BibEntry) -> str:
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in work.fields.items())
    return f"@{work.kind}{{{key},\n{lines}\n}}\n"
