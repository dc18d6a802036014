"""The demonstration: a few reviews, the attention on their words, a picture, a page."""

import pathlib

REVIEWS = (
    "A slow first half, but the ending is superb, and I left the theatre smiling. The "
    "two leads are wonderful together; even the small parts are cast with care. It is "
    "not a perfect film, yet I would watch it again tomorrow.",
    "I wanted to like this. The trailer promised a clever thriller; what I got was two "
    "hours of dull people explaining the plot to each other. The music is fine. "
    "Everything else is a waste of time, and the twist is laughably bad.",
    "The acting isn't great and the effects look cheap, and still I couldn't stop "
    "watching. My kids loved every minute of it.",
)


def demo(out, show):
    """Explains the reviews, the first one in a picture and a page as well.

    Args:
        out: Folder for the files; made if it is not there.
        show: A function that prints an `Explanation`.

    Returns:
        The paths written.
    """
    import zoo

    out = pathlib.Path(out).expanduser()
    out.mkdir(parents=True, exist_ok=True)
    clf = zoo.load("imdb_bilstm_attention")
    explanations = [clf.explain(review) for review in REVIEWS]
    for explanation in explanations:
        show(explanation)
    paths = [out / "attention.png", out / "attention.html"]
    explanations[0].plot(paths[0])
    explanations[0].to_html(paths[1])
    print("Written:", *(f"  {path}" for path in paths), sep="\n")
    print("Attention weights show where the model looked, not why it decided.")
    return paths
