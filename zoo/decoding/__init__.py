"""Search: greedy, beam, samples and ensembles over any next-token function.

What is searched is `next_token(state, token) -> (logits, state, attention)`, or with a
`memory` `next_token(state, token, memory)`: logits (R, V), attention (R, S) or None,
one row R for each hypothesis that is grown.
"""

from zoo.decoding.beams import beam_search
from zoo.decoding.chains import greedy_search, sample
from zoo.decoding.decoder import Decoder
from zoo.decoding.ensembles import EnsembleStepper, ensemble
from zoo.decoding.hypotheses import Hypotheses
from zoo.decoding.scoring import length_divisor

__all__ = [
    "Decoder",
    "EnsembleStepper",
    "Hypotheses",
    "beam_search",
    "ensemble",
    "greedy_search",
    "length_divisor",
    "sample",
]
