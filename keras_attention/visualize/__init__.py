"""Drawings of attention weights: NumPy arrays and strings in, a picture or a page out.

`rollout` draws nothing: it makes one map of the maps of many layers.

Nothing here needs Keras, and importing this package imports no drawing library:
matplotlib and rich are imported by the first call of the function that needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keras_attention.visualize._alignment import alignment
    from keras_attention.visualize._heatmap import heatmap
    from keras_attention.visualize._highlight import highlight
    from keras_attention.visualize._html import highlight_fragment, highlight_html
    from keras_attention.visualize._page import page
    from keras_attention.visualize._rollout import rollout
    from keras_attention.visualize._terminal import highlight_terminal

__all__ = [
    "alignment",
    "heatmap",
    "highlight",
    "highlight_fragment",
    "highlight_html",
    "highlight_terminal",
    "page",
    "rollout",
]

# The modules' names differ from the functions': importing a submodule sets its name
# on the package, which would hide a function of the same name.
_MODULES = {
    "alignment": "_alignment",
    "heatmap": "_heatmap",
    "highlight": "_highlight",
    "highlight_fragment": "_html",
    "highlight_html": "_html",
    "highlight_terminal": "_terminal",
    "page": "_page",
    "rollout": "_rollout",
}


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
