"""Makes the tokenizer of the shipped IMDB models from the word index of Keras."""

from zoo.text import Tokenizer


def tokenizer_of_keras(word_index=None):
    """The tokenizer whose ids are those of `keras.datasets.imdb`.

    zoo/weights/imdb.tokenizer.json is `tokenizer_of_keras().save(path)`.

    Args:
        word_index: {word: rank from 1}; `keras.datasets.imdb.get_word_index()`, which
            is downloaded, by default.

    Returns:
        A `zoo.Tokenizer`: the id of a word is its rank + 3.
    """
    if word_index is None:
        import keras

        word_index = keras.datasets.imdb.get_word_index()
    words = sorted(word_index, key=word_index.get)
    if sorted(word_index.values()) != list(range(1, len(words) + 1)):
        raise ValueError(
            "`word_index` must give each word a rank of its own, from 1 on without "
            f"gaps. Received: {len(words)} words, ranks "
            f"{min(word_index.values())}..{max(word_index.values())}."
        )
    return Tokenizer.from_words(words)
