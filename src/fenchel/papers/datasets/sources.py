"""Sources of the datasets: public originals, licences, citations, and the recipes of our files."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from fenchel.papers.datasets import nci_recipes, recipes

__all__ = ["SOURCES", "Recipe", "Source"]

_MULAN = "https://github.com/tsoumakas/mulan/tree/master/data"
_NO_TERMS = "none stated for the data; customary research use"
_NCI_LABELS = ("cancer_labels.3", "cancer_labels.1", "cancer_labels.2")
_NCI_DRUGS = tuple(
    f"public_drug_info_{version}.txt"
    for version in ("2_14", "2_13", "v2_12", "v2_11", "v2_10", "v2_9", "v2_8_1", "v2.7_correct", "v2.5_correct")
)
# Number of targets, which are the last columns of each file; the ARFF format does not mark them.
_MULAN_TARGETS = {"atp1d": 6, "edm": 2, "oes97": 16, "osales": 12, "sf1": 3, "slump": 3, "wq": 14}


@dataclass(frozen=True)
class Recipe:
    """Recipe of one file: the names of the originals, or patterns such as ``*.wav``, and a function of their paths."""

    file: str
    originals: tuple[str, ...]
    make: Callable[..., dict[str, np.ndarray]]


@dataclass(frozen=True)
class Source:
    """Source of a dataset; without recipes it cannot be built, as ``note`` explains."""

    title: str
    url: str
    licence: str
    citation: str
    recipes: tuple[Recipe, ...] = ()
    note: str = ""

    @property
    def originals(self) -> tuple[str, ...]:
        """Names of all originals, each once."""
        return tuple(dict.fromkeys(name for recipe in self.recipes for name in recipe.originals))


# Numbers are facts of the originals: labels of a file, which ARFF does not mark, and the five folds of MovieLens.
SOURCES = {
    "bike_sharing": Source(
        "Hourly bike rentals, Washington D.C., 2011 and 2012",
        "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
        "CC BY 4.0",
        'H. Fanaee-T and J. Gama, "Event labeling combining ensemble detectors and background knowledge", 2013.',
        (Recipe("hour.csv.gz", ("hour.csv",), recipes.bike_sharing),),
    ),
    "dti": Source(
        "Fractional anisotropy along two white-matter tracts",
        "https://cran.r-project.org/package=refund",
        "GPL (>= 2), the licence of the R package refund; acknowledge Johns Hopkins University and the Kennedy-Krieger "
        "Institute, which collected the data",
        "The R package refund, data set DTI.",
        (Recipe("dti_ms_first_visit.npz", ("DTI.csv",), recipes.dti),),
        "Make DTI.csv in R: write.csv(refund::DTI, 'DTI.csv', row.names = FALSE). The table of all scans, dti.csv.gz, "
        "is not used by any loader and not built.",
    ),
    "fda_air_quality": Source(
        "Hourly responses of gas sensors in an Italian city, 2004 and 2005",
        "https://archive.ics.uci.edu/dataset/360/air+quality",
        "CC BY 4.0",
        'S. De Vito et al., "On field calibration of an electronic nose for benzene estimation in an urban pollution '
        'monitoring scenario", Sensors and Actuators B, 2008.',
        (Recipe("air_quality.npz", ("AirQualityUCI.csv",), recipes.air_quality),),
        "Our file was read from the R package FRegSigCom; the recipe repeats its choice of days and columns.",
    ),
    "lip_emg": Source(
        "Lip acceleration and electromyography, 32 records",
        "https://github.com/BoucheDimitri/SpatioTempOvk/tree/master/datalip",
        "none stated; published for study with the book",
        "J. O. Ramsay and B. W. Silverman, Applied Functional Data Analysis, Springer, 2002, chapter 10.",
        (Recipe("lip_emg.npz", ("EMG.csv", "LipAcc.csv", "LipPos.csv"), recipes.lip_emg),),
    ),
    "massbank_msms": Source(
        "Tandem mass spectra of 4020 molecules, merged from MassBank",
        "https://github.com/MassBank/MassBank-data/releases/tag/2025.05.1",
        "CC BY-SA; each record has a licence of its own, listed in accessions.csv.gz",
        "MassBank-data 2025.05.1.",
        note="There is no recipe: the originals are 49909 records of this release, listed in accessions.csv.gz. The "
        "page on data sets describes how they were selected and merged, and where the candidates come from. No public "
        "copy of the merged files exists; if you have access to one, set FENCHEL_DATA_URL to its address.",
    ),
    "metabolite_fp490": Source(
        "A kernel between 490 tandem mass spectra, and molecular fingerprints",
        "https://github.com/hongyusu/RandomOutputGraphEnsemble/tree/master/shared_scripts/test_data",
        "GPL 2, the licence of the repository",
        'H. Su and J. Rousu, "Multilabel classification through random graph ensembles", Machine Learning, 2015.',
        (Recipe("fp490.npz", ("fp_kernel", "fp_targets"), recipes.fp490),),
    ),
    "movielens100k": Source(
        "MovieLens-100k: 100000 ratings of 1682 films by 943 users",
        "https://grouplens.org/datasets/movielens/100k/",
        "research use only, no redistribution",
        'F. M. Harper and J. A. Konstan, "The MovieLens datasets: history and context", ACM TiiS, 2015.',
        (
            Recipe(
                "ratings.csv.gz",
                ("u.data", *(f"u{k}.test" for k in range(1, 6)), "ua.test", "ub.test"),
                recipes.movielens_ratings,
            ),
            Recipe("users.csv.gz", ("u.user",), recipes.movielens_users),
            Recipe("items.csv.gz", ("u.item",), recipes.movielens_films),
        ),
    ),
    "mulan_mtr": Source(
        "Eight multi-target regression sets of Mulan",
        f"{_MULAN}/multi-target",
        _NO_TERMS,
        'E. Spyromitros-Xioufis et al., "Multi-target regression via input space expansion", Machine Learning, 2016.',
        (
            *(
                Recipe(f"{name}.npz", (f"{name}.arff",), partial(recipes.multi_target, n_targets=count))
                for name, count in _MULAN_TARGETS.items()
            ),
            Recipe("rf1.npz", ("rf1.arff",), recipes.river_flow),
        ),
    ),
    "mulan_multilabel": Source(
        "BIBTEX and COREL5K, multi-label sets of Mulan in their standard splits",
        f"{_MULAN}/multi-label",
        _NO_TERMS,
        'I. Katakis et al., "Multilabel text classification for automated tag suggestion", 2008; '
        'P. Duygulu et al., "Object recognition as machine translation", ECCV 2002.',
        (
            Recipe(
                "bibtex.npz",
                ("bibtex-train.arff", "bibtex-test.arff"),
                partial(recipes.multi_label, n_labels=159, is_binary=True),
            ),
            Recipe(
                "corel5k.npz",
                ("Corel5k-train-sparse.arff", "Corel5k-test-sparse.arff"),
                partial(recipes.multi_label, n_labels=374, is_binary=True),
            ),
        ),
    ),
    "nci_cancer": Source(
        "Activities of 4554 molecules against 59 tumour cell lines",
        "https://github.com/hongyusu/Master_thesis",
        "none stated; the facts are public-domain results of the NCI screen. SMILES: LGPL 3, rcellminerData",
        'H. Su, M. Heinonen and J. Rousu, "Structured output prediction of anti-cancer drug activity", PRIB 2010.',
        (
            Recipe("cell_lines.csv.gz", ("cancer_label.txt",), nci_recipes.nci_cell_lines),
            Recipe(
                "nci_cancer.csv.gz",
                ("cancer_label.txt", "cancer_targets.3", *_NCI_LABELS, *_NCI_DRUGS),
                nci_recipes.nci_table,
            ),
            Recipe("fingerprints.npz", (_NCI_LABELS[0], *_NCI_DRUGS), nci_recipes.nci_fingerprints),
        ),
        "The structures, public_drug_info_*.txt, are in inst/extdata of https://github.com/CBIIT/rcellminerData, "
        "commit 7eabea8. All nine tables are needed: the newest one that lists a molecule gives its structure. Needs "
        "RDKit 2024.9 or newer: pip install 'fenchel[chem]'. The text of SMILES depends on the release of RDKit and is "
        "not compared; the fingerprints are.",
    ),
    "speech_tada": Source(
        "Sound and vocal-tract functions of 416 synthetic words",
        "https://github.com/BoucheDimitri/pyfunreg/tree/master/datasets/dataspeech",
        "none stated; ask the authors before passing it on",
        'V. Mitra et al., "From acoustics to vocal tract time functions", ICASSP 2009.',
        (Recipe("speech_ext.npz", ("*.wav", "*.csv"), recipes.speech),),
        "The originals are the 416 sounds and 416 curves in the subfolder raw. The file of unprocessed words, "
        "speech_raw.npz, is not used by any loader and not built.",
    ),
    "usps": Source(
        "USPS handwritten digits",
        "https://hastie.su.domains/ElemStatLearn/data.html",
        "none stated; made available by AT&T research labs",
        'Y. Le Cun et al., "Handwritten digit recognition with a back-propagation network", NIPS 1989.',
        (Recipe("usps.npz", ("zip.train.gz", "zip.test.gz"), recipes.usps),),
    ),
    "yeast": Source(
        "YEAST: 2417 genes, 14 functional classes, in the official split",
        f"{_MULAN}/multi-label/yeast",
        _NO_TERMS,
        'A. Elisseeff and J. Weston, "A kernel method for multi-labelled classification", NIPS 2001.',
        (
            Recipe(
                "yeast.npz",
                ("yeast-train.arff", "yeast-test.arff"),
                partial(recipes.multi_label, n_labels=14, is_binary=False),
            ),
        ),
    ),
}
