"""Reviews per second: clf.predict on raw text against a plain model.predict on ids.

    python -m benchmarks.prediction --data tfds

The plain side is given its ids ready, padded to the model's limit, as tutorials do;
ours starts from text, tokenises it, sorts by length and cuts batches to their longest.
"""

import time

import keras

import zoo
from benchmarks import reviews

BATCH = 128


def main():
    options = reviews.parse(__doc__.splitlines()[0], texts=2_000)
    texts, _ = reviews.read(options)
    clf = zoo.load("imdb_bilstm_attention")
    ids = [encoding.ids for encoding in clf.tokenizer.encode_batch(texts)]
    padded = keras.utils.pad_sequences(ids, clf.maxlen)
    plain = zoo.imdb_bilstm_attention()

    sides = {
        "model.predict on padded ids": lambda: plain.predict(
            padded, batch_size=BATCH, verbose=0
        ),
        "clf.predict on texts": lambda: clf.predict(texts, batch_size=BATCH),
    }
    seconds = {name: [] for name in sides}
    for turn in range(options.rounds + 1):
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            if turn:  # the first compiles
                seconds[name].append(time.perf_counter() - began)
    speeds = {name: len(texts) / min(times) for name, times in seconds.items()}
    for name, speed in speeds.items():
        print(f"{name}: {speed:.0f} reviews a second")
    ready, raw = speeds.values()
    print(f"ratio: {raw / ready:.2f}")


if __name__ == "__main__":
    main()
