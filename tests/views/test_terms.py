"""Products written out, held against F(2, 3) and F(4, 3) by hand."""

import numpy as np
import pytest

from labkit.conv.winograd.transforms import transforms
from labkit.views import terms


def of(m, r):
    A, G, B = (matrix.astype(float) for matrix in transforms(m, r))
    return terms(np.einsum("ki,jk->kji", G, B), A.T)


def test_outputs_are_put_together_product_by_product():
    say = of(2, 3).data["say"]
    assert len(say) == 6
    assert say[0] == "`y[0]` begins with **M[0]**: it has 1 of its 3 terms and 1 other."
    assert say[1] == "`y[0]` takes **M[1]**: it has 1 of its 3 terms and 4 others."
    assert say[2] == "`y[0]` takes **M[2]**: it has 3 of its 3 terms **and nothing else**."
    assert say[4] == "`y[1]` takes away **M[2]**: it has 2 of its 3 terms and 1 other."


def test_every_output_of_larger_tiles_has_its_terms_in_the_end_in_spite_of_thirds():
    say = of(4, 3).data["say"]
    last = [before for before, after in zip(say, [*say[1:], "begins"], strict=True) if "begins" in after]
    assert len(last) == 4 and all(sentence.endswith("3 of its 3 terms **and nothing else**.") for sentence in last)
    assert any("takes away 8 times **M[4]**" in sentence for sentence in say)


def test_the_table_writes_terms_as_one_does():
    rows = of(2, 3).data["table"]["rows"]
    assert rows[0] == ["y[0]", "M[0]", "d0 g0 - d2 g0", "d0 g0 - d2 g0"]
    assert rows[1][3] == "d0 g0 + 1/2 d1 g0 + 1/2 d1 g1 + 1/2 d1 g2 - 1/2 d2 g0 + 1/2 d2 g1 + 1/2 d2 g2"
    assert rows[2][3] == "d0 g0 + d1 g1 + d2 g2"


def test_products_that_are_wrong_are_seen_to_be():
    products = np.zeros((1, 2, 2))
    products[0, 0, 1] = 1
    assert terms(products, np.array([[1]])).data["say"] == [
        "`y[0]` begins with **M[0]**: it has 0 of its 2 terms and 1 other."
    ]


def test_what_is_no_number_is_said_to_be_none(tmp_path):
    products = np.ones((2, 1, 2))
    products[0, 0, 1] = np.nan
    products[1, 0, 0] = np.inf
    view = terms(products, np.array([[1, -1]]))
    assert [row[2] for row in view.data["table"]["rows"]] == ["d0 g0 + NaN d0 g1", "- infinity d0 g0 - d0 g1"]
    assert view.data["say"][0].endswith("it has 1 of its 1 terms and 1 other.")
    view.save_png(tmp_path / "terms.png")


def test_a_still_picture(tmp_path):
    of(2, 3).save_png(tmp_path / "terms.png", step=1)
    assert (tmp_path / "terms.png").stat().st_size > 5000


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="how often it takes each product"):
        terms(np.zeros((4, 4, 3)), np.zeros((2, 3)))
