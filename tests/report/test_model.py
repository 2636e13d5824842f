import numpy as np
from matplotlib.image import imread

from habitus import MarkovClusteringTopicModel
from habitus.model.inspection import long_run_shares
from habitus.report.figures.scene import captions, draw_model


def test_a_model_as_a_picture(lanes, documents, tmp_path):
    plain = MarkovClusteringTopicModel(2, 3, random_state=0)
    plain.fit(np.random.default_rng(0).poisson(4, (40, 9)))
    sizes = {}
    for name, model in (("lanes", lanes.model), ("crossing", documents.model), ("plain", plain)):
        draw_model(tmp_path / f"{name}.png", model, title=name)
        picture = imread(tmp_path / f"{name}.png")
        assert picture.std() > 0.05
        sizes[name] = picture.shape[:2]
    assert sizes["plain"][0] < sizes["lanes"][0]
    assert sizes["plain"][1] < sizes["crossing"][1]
    assert len(list(tmp_path.iterdir())) == 3


def test_captions_tell_share_and_duration(lanes):
    model = lanes.model
    shares = long_run_shares(model.parameters_.xi)
    for caption, share in zip(captions(model), shares, strict=True):
        assert caption.startswith(f"{share:.0%} of the time, ")
        assert caption.endswith(" s at a time")
