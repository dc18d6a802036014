"""The papers' equations as NumPy loops in float64: what the layers must equal.

Each takes (layer, query, value, key, may_attend) as arrays of rank 3 (query None where
states are pooled), reads the layer's weights, and returns (context, weights).
"""

import keras
import numpy as np


def to_numpy(tensors):
    """A tensor, or a tuple of them, out of the backend."""
    if isinstance(tensors, tuple | list):
        return type(tensors)(to_numpy(t) for t in tensors)
    return keras.ops.convert_to_numpy(tensors)


def read(weight):
    """A weight of a layer in float64; 0 for None."""
    return 0.0 if weight is None else to_numpy(weight).astype("float64")


# ---- scores -> weights


def softmax(energies):
    """{key: energy} -> {key: weight}."""
    peak = max(energies.values(), default=0)
    total = sum(np.exp(e - peak) for e in energies.values())
    return {s: np.exp(e - peak) / total for s, e in energies.items()}


def sparsemax(energies):
    """Martins & Astudillo (2016), equation 2, by bisection of the threshold tau."""
    if not energies:
        return {}
    low, high = max(energies.values()) - 1, max(energies.values())
    for _ in range(100):
        tau = (low + high) / 2
        mass = sum(max(e - tau, 0) for e in energies.values())
        low, high = (tau, high) if mass > 1 else (low, tau)
    return {s: max(e - tau, 0) for s, e in energies.items()}


NORMALIZERS = {"softmax": softmax, "sparsemax": sparsemax}


# ---- the loop that all mechanisms share


def by_loops(energy_of, weigh=None):
    """A reference for an energy: `energy_of(layer) -> (q, k) -> number`.

    `weigh(layer, energies, i, t, query, may_attend)` turns {key: energy} into
    {key: weight}; the layer's activation by default.
    """

    def reference(layer, query, value, key, may_attend):
        batch, steps, length = may_attend.shape
        context = np.zeros((batch, steps, value.shape[2]))
        weights = np.zeros((batch, steps, length))
        energy = energy_of(layer)
        for i in range(batch):
            for t in range(steps):
                q = None if query is None else query[i, t].astype("float64")
                energies = {
                    s: energy(q, key[i, s].astype("float64"))
                    for s in range(length)
                    if may_attend[i, t, s]
                }
                if weigh is None:
                    found = NORMALIZERS[layer.activation](energies)
                else:
                    found = weigh(layer, energies, i, t, query, may_attend)
                for s, weight in found.items():
                    weights[i, t, s] = weight
                    context[i, t] += weight * value[i, s]
        return context, weights

    return reference


# ---- energies


def additive_energy(layer):
    """Bahdanau et al. (2015), section A.1.2; Salimans & Kingma (2016), equation 2."""
    W = 0.0 if layer.query_kernel is None else read(layer.query_kernel)
    U, v, b = read(layer.key_kernel), read(layer.score_vector), read(layer.bias)
    if layer.normalize:
        v = read(layer.gain) * v / np.sqrt((v**2).sum())

    def energy(q, k):
        return float(v @ np.tanh((0 if q is None else q @ W) + k @ U + b))

    return energy


def luong_energy(layer):
    """Luong et al. (2015), section 3.1, and the scaled dot product."""

    def concat(q, k):
        W = np.concatenate([read(layer.query_kernel), read(layer.key_kernel)])
        return float(read(layer.score_vector) @ np.tanh(np.concatenate([q, k]) @ W))

    return {
        "dot": lambda q, k: float(q @ k),
        "scaled_dot": lambda q, k: float(q @ k / np.sqrt(len(k))),
        "general": lambda q, k: float(q @ read(layer.kernel) @ k),
        "concat": concat,
    }[layer.score_name]


def dot_energy(layer):
    """Vaswani et al. (2017), equation 1."""
    return lambda q, k: float(q @ k / (np.sqrt(len(k)) if layer.scale else 1))


def local_weigh(layer, energies, i, t, query, may_attend):
    """Luong et al. (2015), section 3.2, positions counted over what is not padding."""
    real = np.flatnonzero(may_attend[i].any(0))
    position = {s: n for n, s in enumerate(real)}
    if layer.mode == "monotonic":
        centre = t
    else:
        hidden = np.tanh(query[i, t] @ read(layer.position_kernel))
        logit = hidden @ read(layer.position_vector)
        centre = len(real) / (1 + np.exp(-logit))
    D = layer.window
    near = {s: e for s, e in energies.items() if abs(position[s] - centre) <= D}
    weights = NORMALIZERS[layer.activation](near)
    if layer.mode == "predictive":
        for s in weights:
            distance = position[s] - centre
            weights[s] *= np.exp(-(distance**2) / (2 * (D / 2) ** 2))
    if layer.renormalize:
        total = sum(weights.values()) or 1
        weights = {s: w / total for s, w in weights.items()}
    return weights


additive = by_loops(additive_energy)
luong = by_loops(luong_energy)
scaled_dot_product = by_loops(dot_energy)
local = by_loops(lambda layer: luong_energy(layer.scorer), local_weigh)


def self_attention(layer, query, value, key, may_attend):
    """Vaswani et al. (2017), equation 1, of one tensor; with an output projection."""
    queries, keys, values = (
        query @ read(layer.query_kernel),
        query @ read(layer.key_kernel),
        query @ read(layer.value_kernel),
    )
    context, weights = scaled_dot_product(layer, queries, values, keys, may_attend)
    return context @ read(layer.output_kernel), weights


def multi_head(layer, query, value, key, may_attend):
    """Vaswani et al. (2017), section 3.2.2; Ainslie et al. (2023): shared key heads."""
    plain = type("Plain", (), {"scale": True, "activation": layer.activation})
    d, v = layer.key_dim, layer.value_dim or layer.key_dim

    def project(x, name, head, width):
        kernel = read(getattr(layer, f"{name}_kernel"))
        bias = read(getattr(layer, f"{name}_bias"))
        rows = x @ kernel + bias
        return rows[..., head * width : (head + 1) * width]

    contexts, maps = [], []
    for head in range(layer.num_heads):
        shared = head // (layer.num_heads // layer.groups)
        context, weights = scaled_dot_product(
            plain,
            project(query, "query", head, d),
            project(value, "value", shared, v),
            project(key, "key", shared, d),
            may_attend,
        )
        contexts.append(context)
        maps.append(weights)
    output = np.concatenate(contexts, -1) @ read(layer.output_kernel)
    output = output + read(layer.output_bias)
    output[~may_attend.any(-1)] = 0
    return output, np.stack(maps, 1)


def monotonic(layer, query, value, key, may_attend):
    """Raffel et al. (2017), equation 9 (soft) and section 2.2 (hard), at inference."""
    energy, bias = luong_energy(layer.scorer), read(layer.score_bias)
    weights = np.zeros(may_attend.shape)
    for i, t in np.ndindex(*may_attend.shape[:2]):
        if t == 0:
            previous = {0: 1.0}
        p = {
            s: 1 / (1 + np.exp(-energy(query[i, t], key[i, s]) - bias))
            for s in np.flatnonzero(may_attend[i, t])
        }
        if not p:
            continue
        if layer.hard:
            start = min(previous, default=np.inf)
            stops = [s for s in p if s >= start and p[s] > 0.5]
            previous = dict.fromkeys(stops[:1], 1.0)
        else:
            came, previous = previous, {}
            for s in p:
                previous[s] = p[s] * sum(
                    mass * np.prod([1 - p[j] for j in p if k <= j < s])
                    for k, mass in came.items()
                    if k <= s
                )
        weights[i, t, list(previous)] = list(previous.values())
    return weights @ value, weights


def location(layer, query, value, key, may_attend):
    """Chorowski et al. (2015), equations 8 and 9."""
    W, V, w = map(read, (layer.query_kernel, layer.key_kernel, layer.score_vector))
    F, U, b = map(read, (layer.location_filters, layer.location_kernel, layer.bias))
    weights = np.zeros(may_attend.shape)
    length, behind = value.shape[1], (layer.kernel_size - 1) // 2
    for i, t in np.ndindex(*may_attend.shape[:2]):
        if t == 0:
            alignment = np.zeros(length)
        energies = {}
        for s in np.flatnonzero(may_attend[i, t]):
            hidden = query[i, t] @ W + key[i, s] @ V + b
            for j in range(layer.kernel_size):
                if 0 <= s + j - behind < length:
                    hidden = hidden + alignment[s + j - behind] * (F[j] @ U)
            energies[s] = w @ np.tanh(hidden)
        for s, weight in NORMALIZERS[layer.activation](energies).items():
            weights[i, t, s] = weight
        if energies:
            alignment = weights[i, t] + (alignment if layer.accumulate else 0)
    return weights @ value, weights
