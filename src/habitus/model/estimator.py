"""The Markov Clustering Topic Model as a scikit-learn estimator.

The one module of the model that imports scikit-learn: whoever learns and judges scenes does
without it.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from habitus.corpus.documents import Corpus
from habitus.corpus.shards import ShardedCorpus
from habitus.errors import InvalidInputError
from habitus.model.topic_model import TopicModel


class MarkovClusteringTopicModel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    TopicModel,
):
    """Markov Clustering Topic Model of documents in time order, as a scikit-learn estimator.

    Parameters, fitted attributes and methods are those of `habitus.model.TopicModel`; beside them
    stand `get_params`, `set_params`, `set_output` and `get_feature_names_out`. Pipelines, `clone`
    and searches of scikit-learn take it; in a pipeline, its features are the topics.

    Examples
    --------
    >>> import habitus
    >>> from sklearn.base import clone
    >>> counts = [[9, 0], [0, 9], [8, 1], [1, 8]]
    >>> model = habitus.MarkovClusteringTopicModel(2, 2, min_words=0, random_state=0).fit(counts)
    >>> clone(model).set_params(n_topics=3)
    MarkovClusteringTopicModel(min_words=0, n_behaviours=2, n_topics=3,
                               random_state=0)
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the constructor by name; an unknown name is an `InvalidInputError`."""
        names = self._get_param_names()
        for name in params:
            if name not in names:
                raise InvalidInputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}",
                    parameter=name,
                )
        super().set_params(**params)
        return self

    @available_if(lambda self: self.learning == "em")  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Self:
        """Learn from one batch after the other, by on-line EM; see `TopicModel.partial_fit`."""
        return super().partial_fit(X, y, lengths=lengths)

    # Of this class: scikit-learn wraps them for `set_output`.
    transform = TopicModel.transform
    fit_transform = TopicModel.fit_transform

    @property
    def _n_features_out(self) -> int:
        return int(self.sizes.n_topics)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _check_fitted(self) -> None:
        try:
            super()._check_fitted()
        except InvalidInputError as error:
            raise NotFittedError(str(error)) from None

    def _corpus(self, X: Any, lengths: ArrayLike | None, *, reset: bool) -> Corpus:
        """Return documents as a corpus, counts after scikit-learn's own validation."""
        if not isinstance(X, Corpus | ShardedCorpus):
            # Sparse counts stay as they are: `Corpus` checks them before they are converted.
            X = validate_data(
                self, X, reset=reset, accept_sparse=True, dtype=np.float64, ensure_all_finite=False
            )
        return super()._corpus(X, lengths, reset=reset)
