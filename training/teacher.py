"""A quick teacher for texts nobody has labelled: n-grams and logistic regression.

A network learns from few labels slowly, a bag of n-grams fast; so the bag labels the
unlabelled texts, with probabilities, and the network learns from those too
(self-training with another kind of model as the teacher, as in distillation: Hinton,
Vinyals & Dean 2015). Needs scikit-learn: pip install "keras-attention-zoo[teacher]".
"""

import numpy as np

LEAST_TEXTS = 3  # n-grams that stand in fewer texts are left out
FOLDS = 5


def teach(ids, labels, num_classes, more):
    """Learns from labelled texts and gives class probabilities for others.

    Args:
        ids: A list of N lists of token ids.
        labels: Their classes (N,).
        num_classes: Number of classes.
        more: Lists of lists of ids, such as [unlabelled, validation].

    Returns:
        A list of arrays (texts, num_classes), one for each of `more`.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed.
        ValueError: if a class has too few texts to learn from.
    """
    fewest = np.bincount(labels, minlength=num_classes).min()
    if fewest < FOLDS:
        raise ValueError(
            f"A teacher needs {FOLDS} or more labelled texts of every class. Received: "
            f"{fewest} of the rarest. Label more, or train without `unlabelled`."
        )
    vectorizer, classifier = _make(num_classes)
    try:
        counts = vectorizer.fit_transform(_as_words(ids))
    except ValueError:  # scikit-learn's: no n-gram is left
        raise ValueError(
            f"A teacher learns from words that stand in {LEAST_TEXTS} or more texts. "
            f"Received: {len(ids)} texts without any. Label more, or train without "
            "`unlabelled`."
        ) from None
    classifier.fit(counts, labels)
    return [
        classifier.predict_proba(vectorizer.transform(_as_words(texts)))
        for texts in more
    ]


def _as_words(ids):
    """Ids, without the start, as the blank-separated words that vectorizers take."""
    return [" ".join(map(str, row[1:])) for row in ids]


def _make(num_classes):
    """An n-gram counter and a calibrated classifier of scikit-learn."""
    try:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.multiclass import OneVsRestClassifier
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Learning from unlabelled texts needs scikit-learn. Install it: pip "
            'install "keras-attention-zoo[teacher]".',
            name=error.name,
        ) from error
    from training.naive_bayes import NaiveBayesLogistic

    vectorizer = CountVectorizer(
        binary=True, ngram_range=(1, 3), min_df=LEAST_TEXTS, token_pattern=r"\S+"
    )
    classifier = NaiveBayesLogistic()
    if num_classes > 2:
        classifier = OneVsRestClassifier(classifier)
    return vectorizer, CalibratedClassifierCV(classifier, cv=FOLDS, ensemble=False)
