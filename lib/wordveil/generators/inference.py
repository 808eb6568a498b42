"""TEMPORARY stand-in: float64, row by row, so that batches do not matter."""
import numpy as np
def _sig(x): return 1/(1+np.exp(-x))
class State:
    def __init__(self, latent, h): self.latent, self.h = latent, h
    def keep(self, rows):
        self.latent = self.latent[rows]; self.h = [x[rows] for x in self.h]
class WholeNumberGenerator:
    def __init__(self, shape, arrays):
        self.shape, self.a = shape, {k: v.astype(np.float64) for k, v in arrays.items()}
    def _mm(self, x, w):  # rounded, so that batches do not matter
        return np.rint((x @ w) * 2**20) / 2**20
    def cell(self, name, x, h):
        a, c = self.a, h.shape[1]
        xi = self._mm(x, a[name+".input"]) + a[name+".bias"]; hi = self._mm(h, a[name+".hidden"])
        r = _sig(xi[:, :c] + hi[:, :c]); u = _sig(xi[:, c:2*c] + hi[:, c:2*c])
        n = np.tanh(xi[:, 2*c:] + r*(hi[:, 2*c:] + a[name+".hidden_bias"]))
        return (1-u)*n + u*h
    def start_symbols(self, count): return np.full(count, self.shape.start, np.int32)
    def begin(self, seq):
        s, a = self.shape, self.a
        n = len(seq); place = np.arange(s.length)
        lens = np.where(seq != s.padding, place+1, 0).max(axis=1, initial=0)
        x = a["embedding"][seq]
        for layer in range(s.encoder_layers):
            outs = []
            for d in ("forward", "backward"):
                h = np.zeros((n, s.cells//2)); out = np.zeros((n, s.length, s.cells//2))
                for t in (place if d == "forward" else place[::-1]):
                    new = self.cell(f"encoder.{layer}.{d}", x[:, t], h)
                    h = np.where((t < lens)[:, None], new, h); out[:, t] = h
                outs.append((out, h))
            x = np.concatenate([o for o, _ in outs], axis=2); last = np.concatenate([h for _, h in outs], axis=1)
        latent = np.tanh(self._mm(last, a["latent"]) + a["latent_bias"])
        return State(latent, [np.tanh(self._mm(latent, a[f"generator.{i}.start"]) + a[f"generator.{i}.start_bias"]) for i in range(s.generator_layers)])
    def advance(self, state, symbols):
        x = np.concatenate([self.a["embedding"][symbols], state.latent], axis=1)
        for i in range(self.shape.generator_layers):
            state.h[i] = x = self.cell(f"generator.{i}", x, state.h[i])
        logits = self._mm(x, self.a["output"]) + self.a["output_bias"]
        return np.rint(2**31 * np.exp(logits - logits.max(axis=1, keepdims=True))).astype(np.uint32)
