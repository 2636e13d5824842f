"""scikit-learn's estimator contract, without a second of imports at every start."""

from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from habitus.documents import Corpus
from habitus.errors import InvalidInputError


class Estimator:
    """What scikit-learn asks of an estimator: parameters by name, tags, a readable form.

    It stands in for `sklearn.base.BaseEstimator`, whose import brings in scipy.stats and takes
    longer than learning a scene; scikit-learn's own checks run on it in the tests. scikit-learn is
    imported when an array is passed or one of its tools is used.
    """

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the constructor's parameters by name."""
        return {name: getattr(self, name) for name in sorted(self._parameter_names())}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the constructor by name."""
        known = self._parameter_names()
        for name, value in parameters.items():
            if name not in known:
                raise InvalidInputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Name the parameters that are not at their defaults."""
        defaults = signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """Counts: no negative values, sparse matrices welcome."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, positive_only=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted once there are parameters."""
        return hasattr(self, "parameters_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit, or load a model"
            )

    def _corpus(self, X: Any, lengths: ArrayLike | None, *, reset: bool) -> Corpus:
        """Documents from whatever was passed; `reset` to learn them, else to be as those learnt."""
        if not isinstance(X, Corpus):
            from sklearn.utils.validation import validate_data

            counts = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False
            )
            return Corpus(counts, lengths=lengths)
        if lengths is not None:
            raise InvalidInputError("a Corpus has its own lengths: leave out lengths=")
        if reset:
            self.n_features_in_ = X.n_words
        elif X.n_words != self.n_features_in_:
            raise InvalidInputError(
                f"the corpus has a vocabulary of {X.n_words} words, the model was learnt on "
                f"{self.n_features_in_}"
            )
        return X

    def _checked(self, X: Any, lengths: ArrayLike | None) -> Corpus:
        self._check_fitted()
        return self._corpus(X, lengths, reset=False)
