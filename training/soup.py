"""The mean of the weights of two runs that began alike: a model soup."""

import numpy as np


def soup(translator, other):
    """Gives a model of two texts the mean of its weights and another's.

    Runs that went different ways from one start often lie in one valley of the loss,
    and the mean of them is better than each; that of runs with different starts is
    worth nothing. Measure it before it is used: Wortsman et al. (2022), "Model soups"
    ([arXiv:2203.05482](https://arxiv.org/abs/2203.05482)).

    Args:
        translator: The `zoo.Translator` whose model gets the mean.
        other: Another, of the same sizes and tokenizers.

    Raises:
        ValueError: if the two are not alike.
    """
    weights, others = translator.model.get_weights(), other.model.get_weights()
    if [x.shape for x in weights] != [x.shape for x in others]:
        raise ValueError(
            f"The models of a soup must be of the same sizes. Received: {translator} "
            f"and {other}. Take a run that began with the weights of the other."
        )
    for side in ("source_tokenizer", "target_tokenizer"):
        if _tokens(getattr(translator, side)) != _tokens(getattr(other, side)):
            raise ValueError(
                f"The models of a soup must have one {side}. Received: those of "
                f"{translator} and {other}, which differ. Take a run that began with "
                "the weights of the other."
            )
    means = [np.mean(pair, axis=0) for pair in zip(weights, others, strict=True)]
    translator.model.set_weights(means)


def _tokens(tokenizer):
    ids = range(tokenizer.vocabulary_size)
    return tokenizer.kind, tokenizer.lowercase, tokenizer.pieces(ids)
