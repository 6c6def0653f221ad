"""help(pellucid): every name with one line, and the way for those who know other libraries."""

import pydoc

import pytest

import pellucid


def test_each_public_name_has_one_line_on_the_first_page():
    page = pydoc.plain(pydoc.render_doc(pellucid))
    description = page[: page.index("PACKAGE CONTENTS")]
    told = {
        line.split()[0] for line in description.splitlines() if " ... " in line or "...." in line
    }
    assert told == set(pellucid.__all__) - {"__version__"}


@pytest.mark.parametrize("name", ["pipeline", "from_pretrained", "AutoModelForSeq2SeqLM"])
def test_a_name_from_transformers_points_to_load(name: str):
    with pytest.raises(AttributeError) as caught:
        getattr(pellucid, name)
    assert str(caught.value) == (
        f"module 'pellucid' has no attribute '{name}'; pellucid.load(path) gives a translator"
    )
