"""The sources behind `load`: TensorFlow Datasets, keras.datasets, folders."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

from training import datasets

NAMES = ("negative", "positive")
TRAIN = [("bad caf\u00e9", 0), ("good", 1), ("fine", 1), ("dull", 0), ("great", 1)]
TEST = [("poor", 0), ("superb", 1), ("weak", 0)]


def pairs(data):
    return sorted(zip(data.texts, data.labels.tolist(), strict=True))


def test_importing_the_package_imports_no_framework():
    code = "import sys, training.datasets; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"keras", "tensorflow", "tensorflow_datasets"}


# ---- TensorFlow Datasets


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory):
    """A folder in which `tfds.load("imdb_reviews")` finds a small data set prepared.

    Same name, config, version, features and splits as the real one; its unsupervised
    split has the label -1, as there.
    """
    tfds = pytest.importorskip("tensorflow_datasets")
    splits = {"train": TRAIN, "test": TEST, "unsupervised": [("who knows", -1)]}

    class Reviews(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        name = "imdb_reviews"
        VERSION = tfds.core.Version("1.0.0")
        BUILDER_CONFIGS = (tfds.core.BuilderConfig(name="plain_text", version="1.0.0"),)
        url_infos = {}  # noqa: RUF012 - nothing to download, no checksums to look up

        def _info(self):
            features = tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=["neg", "pos"]),
                }
            )
            return tfds.core.DatasetInfo(
                builder=self, features=features, supervised_keys=("text", "label")
            )

        def _split_generators(self, dl_manager):
            return {name: self._generate_examples(name) for name in splits}

        def _generate_examples(self, name):
            for number, (text, label) in enumerate(splits[name]):
                yield number, {"text": text, "label": label}

    folder = tmp_path_factory.mktemp("tfds")
    Reviews(data_dir=folder).download_and_prepare()
    return folder


def test_tfds_gives_the_reviews_that_tfds_load_reads(tfds_folder):
    splits = datasets.load("tfds", data_dir=tfds_folder)
    assert pairs(splits.train) == sorted(TRAIN)
    assert pairs(splits.test) == sorted(TEST)
    assert splits.train.label_names == splits.test.label_names == NAMES
    assert all(isinstance(text, str) for text in splits.train.texts)


def test_tfds_gives_the_unlabelled_reviews(tfds_folder):
    assert datasets.unlabelled("tfds", data_dir=tfds_folder) == ["who knows"]


def test_unlabelled_texts_of_a_folder(tmp_path):
    inner = tmp_path / "train" / "unsup"
    inner.mkdir(parents=True)
    (inner / "2_0.txt").write_text("second\n", encoding="utf-8")
    (inner / "1_0.txt").write_text("first", encoding="utf-8")
    assert datasets.unlabelled(tmp_path) == ["first", "second"]
    assert datasets.unlabelled(inner) == ["first", "second"]
    with pytest.raises(ValueError, match=r"holds no \.txt files"):
        datasets.unlabelled(tmp_path / "train")


def test_tfds_gives_the_same_order_each_time(tfds_folder):
    first, again = (datasets.load("tfds", data_dir=tfds_folder) for _ in range(2))
    assert first.train.texts == again.train.texts


def test_tfds_follows_the_class_order_of_a_trained_model(tfds_folder):
    names = ("positive", "mixed", "negative")
    train = datasets.load("tfds", data_dir=tfds_folder, label_names=names).train
    assert pairs(train) == sorted((text, 2 - 2 * label) for text, label in TRAIN)
    with pytest.raises(ValueError, match=r"a class 'negative'.*one of \('bad', 'good'"):
        datasets.load("tfds", data_dir=tfds_folder, label_names=("bad", "good"))


@pytest.mark.parametrize("kind", ["network", "server"])
def test_tfds_without_a_network_says_how_to_go_on(monkeypatch, kind):
    tfds = pytest.importorskip("tensorflow_datasets")
    error = {"network": ConnectionError, "server": tfds.download.DownloadError}[kind]

    def fail(*args, **kwargs):
        raise error("no way")

    monkeypatch.setattr(tfds, "load", fail)
    with pytest.raises(OSError, match=f"{error.__name__}: no way.*`data_dir`.*aclImdb"):
        datasets.load("tfds")


def test_a_package_that_tfds_lacks_is_named(monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    def fail(*args, **kwargs):
        raise ModuleNotFoundError("No module named 'spam'", name="spam")

    monkeypatch.setattr(tfds, "load", fail)
    with pytest.raises(ModuleNotFoundError, match="pip install spam"):
        datasets.load("tfds")
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorflow_datasets"):
        datasets.load("tfds")


# ---- keras.datasets


def test_keras_gives_the_documented_ids(monkeypatch):
    from keras.datasets import imdb

    documented = {"start_char": 1, "oov_char": 2, "index_from": 3}
    everything = {"num_words": None, "skip_top": 0, "maxlen": None}
    signature = inspect.signature(imdb.load_data)
    texts = [[1, 14, 22, 16], [1, 43], [1, 2, 530]]

    def load_data(*args, **kwargs):
        call = signature.bind(*args, **kwargs)
        call.apply_defaults()
        assert documented.items() <= call.arguments.items()
        assert everything.items() <= call.arguments.items()
        return (texts, np.array([1, 0, 1])), (texts[:2], np.array([0, 1]))

    monkeypatch.setattr(imdb, "load_data", load_data)
    splits = datasets.load("keras")
    assert splits.train.texts == texts
    assert splits.train.is_tokenized
    assert splits.train.labels.tolist() == [1, 0, 1]
    assert splits.test.labels.tolist() == [0, 1]
    assert splits.test.label_names == NAMES


@pytest.mark.parametrize("error", [Exception, ConnectionError])
def test_keras_without_a_network_says_how_to_go_on(monkeypatch, error):
    from keras.datasets import imdb

    def fail(*args, **kwargs):
        raise error("URL fetch failure on X")

    monkeypatch.setattr(imdb, "load_data", fail)
    with pytest.raises(OSError, match=r"URL fetch failure on X.*imdb\.npz.*aclImdb"):
        datasets.load("keras")


def test_a_fault_that_is_not_the_network_keeps_its_name(monkeypatch):
    from keras.datasets import imdb

    def fail(*args, **kwargs):
        raise KeyError("x_train")

    monkeypatch.setattr(imdb, "load_data", fail)
    with pytest.raises(KeyError, match="x_train"):
        datasets.load("keras")


# ---- folders


@pytest.fixture
def write(tmp_path):
    """Writes {path below the folder: text} and returns the folder."""

    def write_files(files):
        for name, text in files.items():
            path = tmp_path / "reviews" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / "reviews"

    return write_files


ACLIMDB = {
    "train/neg/0_3.txt": "\ufeffbad caf\u00e9",
    "train/neg/10_1.txt": " dull\n",
    "train/pos/0_9.txt": "good",
    "train/unsup/0_0.txt": "who knows",
    "train/labeledBow.feat": "9 0:9",
    "train/neg/notes.md": "not a review",
    "train/neg/.hidden.txt": "not a review",
    "train/.cache/x.txt": "not a review",
    "test/neg/0_2.txt": "poor",
    "test/pos/0_10.txt": "superb",
    "README": "about",
}


def test_a_folder_in_aclimdb_layout_is_read_in_order(write):
    splits = datasets.load(write(ACLIMDB))
    assert splits.train.texts == ["bad caf\u00e9", "dull", "good"]
    assert splits.train.labels.tolist() == [0, 0, 1]
    assert splits.test.texts == ["poor", "superb"]
    assert splits.train.label_names == splits.test.label_names == NAMES


def test_the_order_of_a_folder_is_that_of_its_names(write):
    numbers = np.random.default_rng(3).permutation(23)
    files = {f"{name}/{i:02}.txt": f"{name} {i:02}" for i in numbers for name in "ba"}
    texts = datasets.load(write(files)).train.texts
    assert len(texts) == 46
    assert texts == sorted(texts)


def test_class_folders_alone_are_a_training_part(write):
    folder = write({f"{stars}/a.txt": f"{stars} stars" for stars in (10, 9, 1)})
    splits = datasets.load(str(folder))
    assert splits.train.label_names == ("1", "9", "10")
    assert splits.train.texts == ["1 stars", "9 stars", "10 stars"]
    assert splits.test is None


def test_the_test_part_may_lack_a_class_but_not_add_one(write):
    folder = write({f"train/{name}/a.txt": name for name in ("a", "b", "c")})
    write({"test/c/a.txt": "x"})
    assert datasets.load(folder).test.labels.tolist() == [2]
    write({"test/d/a.txt": "x"})
    with pytest.raises(ValueError, match=r"test has a class 'd'.*'a', 'b', 'c'"):
        datasets.load(folder)


def test_a_folder_follows_the_classes_of_a_trained_model(write):
    folder = write(ACLIMDB)
    names = ("positive", "negative")
    assert datasets.load(folder, label_names=names).train.labels.tolist() == [1, 1, 0]
    only_one = datasets.load(write({"x/1/a.txt": "good"}) / "x", label_names=NAMES)
    assert only_one.train.labels.tolist() == [1]
    with pytest.raises(ValueError, match=r"class 'negative'.*did you mean 'Negative'"):
        datasets.load(folder, label_names=("Negative", "Positive"))


REFUSED_FOLDERS = {
    "no class": (
        {"a.txt": "x"},
        r"holds 0 class folders \(none\)\. Expected: a folder",
    ),
    "one class": ({"pos/a.txt": "x"}, r"holds 1 class folders \('pos'\)"),
    "test alone": (
        {"test/neg/a.txt": "x"},
        r"'test' but no folder 'train'.*give .*test",
    ),
    "no texts": ({"neg/a.txt": "x", "pos/a.md": "y"}, r"pos holds no \.txt files"),
    "empty texts": (
        {"neg/a.txt": " ", "pos/a.txt": ""},
        r"All 2 texts in .* are empty",
    ),
    "twice": (
        {"neg/a.txt": "x", "negative/a.txt": "y"},
        r"two folders for the class 'negative': 'neg' and 'negative'",
    ),
    "not UTF-8": (
        {"neg/a.txt": "x", "pos/b.txt": b"one\ncaf\xe9"},
        r"pos.b\.txt, line 2: byte 0xe9 is not UTF-8",
    ),
}


@pytest.mark.parametrize("files, match", REFUSED_FOLDERS.values(), ids=REFUSED_FOLDERS)
def test_a_folder_of_another_layout_is_refused(write, files, match):
    with pytest.raises(ValueError, match=match):
        datasets.load(write(files))


# ---- other sources, and options without a use


def test_an_unknown_source_lists_the_forms(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    forms = r'"tfds", "keras", a folder with class folders .*\.csv, \.tsv'
    with pytest.raises(
        FileNotFoundError, match=f"{forms}.*'imdb', which does not exist"
    ):
        datasets.load("imdb")
    with pytest.raises(FileNotFoundError, match=r"none\.csv', which does not exist"):
        datasets.load(tmp_path / "none.csv")
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(ValueError, match=f"{forms}.*a.xlsx', which exists, but"):
        datasets.load(tmp_path / "a.xlsx")


def test_a_source_of_another_type_is_refused():
    with pytest.raises(TypeError, match=r"`source` must be a string or a path.*None"):
        datasets.load(None)


def test_an_option_without_a_use_is_refused(write):
    folder = write({"neg/a.txt": "x", "pos/a.txt": "y", "a.csv": "text,label\n"})
    for source in ("tfds", "keras", folder):
        with pytest.raises(
            ValueError, match=r"are for \.csv and \.tsv files.*'review'"
        ):
            datasets.load(source, text_column="review")
    for source in ("keras", folder, folder / "a.csv"):
        with pytest.raises(ValueError, match='`data_dir` is for the source "tfds"'):
            datasets.load(source, data_dir="data")
