"""What the paper reports, on its own two videos: other data than any of ours."""

from typing import NamedTuple


class Reported(NamedTuple):
    """A figure of the paper on each of its data sets."""

    qmul: float
    idiap: float


MEAN_AREA = {
    "em": Reported(0.3166, 0.3759),
    "vb": Reported(0.3155, 0.3729),
    "gibbs": Reported(0.2970, 0.3673),
}
"""Mean area under the precision-recall curve, best setting of each learner."""
EM_ACCURACY = Reported(0.9544, 0.8891)
"""Best classification accuracy of EM."""
DECIDING = {"one": 0.0044, "few": 0.0177, "many": 0.3331}
"""Seconds a document, MATLAB on a laptop of 2013."""
LOCALISED = (0.45, 0.9)
"""Where 45 % of the abnormal words could be found, about 90 % of those were."""
