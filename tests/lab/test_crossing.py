import numpy as np

from habitus.lab.crossing import crossing, crossing_vocabulary


def test_the_crossing_is_a_model():
    truth = crossing().checked(tolerance=1e-12)
    assert truth.sizes == (crossing_vocabulary().n_words, 8, 4)


def test_phases_follow_each_other_in_a_cycle():
    xi = crossing().xi
    order, z = [], 0
    for _ in range(4):
        order.append(z)
        z = int(np.argmax(np.where(np.arange(4) == z, 0, xi[:, z])))
    assert order == [0, 1, 2, 3]
    assert z == 0
