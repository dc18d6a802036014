"""Logistic regression on n-grams that are weighted by their naive Bayes log-ratio."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize


class NaiveBayesLogistic(ClassifierMixin, BaseEstimator):
    """NB features and a linear classifier for two classes, as a scikit-learn estimator.

    Wang & Manning (2012), "Baselines and Bigrams", section 2.3: each binary feature
    is multiplied by r = log((p / |p|) / (q / |q|)), its log-count ratio; rows are then
    brought to length 1, and logistic regression takes the place of the SVM.

    Args:
        C: Inverse strength of the regularisation.
    """

    def __init__(self, C=30.0):
        self.C = C

    def fit(self, X, y):
        """X: sparse (N, features) of 0 and 1; y: two classes (N,)."""
        self.classes_ = np.unique(y)
        positive = y == self.classes_[-1]
        p = 1 + np.asarray(X[np.flatnonzero(positive)].sum(axis=0)).ravel()
        q = 1 + np.asarray(X[np.flatnonzero(~positive)].sum(axis=0)).ravel()
        self.ratio_ = np.log((p / p.sum()) / (q / q.sum()))
        self.logistic_ = LogisticRegression(C=self.C, max_iter=100, tol=1e-3)
        self.logistic_.fit(self._weigh(X), y)
        return self

    def decision_function(self, X):
        """The log-odds of the second class (N,)."""
        return self.logistic_.decision_function(self._weigh(X))

    def predict(self, X):
        """The more probable class (N,)."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def _weigh(self, X):
        return normalize(X.multiply(self.ratio_).tocsr())
