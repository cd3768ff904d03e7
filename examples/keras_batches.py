"""Keras: batches mixed in NumPy, with partners and lambdas drawn anew each epoch."""

import keras
import numpy as np

from cmixup import Beta, PartnerSampler

rng = np.random.default_rng(0)
x = rng.random((600, 5), dtype=np.float32)
y = np.exp(x).sum(axis=1)


class MixedBatches(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size, seed=0):
        super().__init__()
        self.x, self.y, self.batch_size, self.rng = x, y, batch_size, np.random.default_rng(seed)
        self.sampler, self.beta = PartnerSampler(y, ("std", 0.3)), Beta(2.0)
        self.on_epoch_end()

    def on_epoch_end(self):
        self.rows = self.rng.permutation(len(self.x))
        self.partners = self.sampler.draw(self.rows, self.rng)
        self.lam = self.beta.sample(len(self.rows), self.rng).numpy()

    def __len__(self):
        return len(range(0, len(self.rows), self.batch_size))

    def __getitem__(self, batch):
        part = slice(batch * self.batch_size, (batch + 1) * self.batch_size)
        i, j, lam = self.rows[part], self.partners[part], self.lam[part]
        return lam[:, None] * self.x[i] + (1 - lam[:, None]) * self.x[j], lam * self.y[i] + (1 - lam) * self.y[j]


keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), "mse")
model.fit(MixedBatches(x[:400], y[:400], 64), epochs=30, verbose=0)
rmse = np.sqrt(np.mean((model.predict(x[400:], verbose=0)[:, 0] - y[400:]) ** 2))
print(f"test RMSE {rmse:.3f}, of the mean label {np.std(y[400:]):.3f}")
