"""Hugging Face: mixing as the collator of the training batches, and of those alone.

Numbers of tokens cannot be mixed: models of text mix a hidden layer, `cmixup.mixing_at(model, "bert.embeddings", ...)`.
"""

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from cmixup import CMixup

torch.manual_seed(0)
images, labels = torch.rand(240, 1, 8, 8), torch.rand(240)
images[:, :, :, :4] *= labels[:, None, None, None]  # how bright the left half is
rows = [{"pixel_values": image, "labels": label} for image, label in zip(images, labels, strict=True)]
mixing = CMixup(bandwidth=("std", 0.3), alpha=2.0, seed=0, labels=labels[:160])


class CMixupTrainer(Trainer):
    """`data_collator` would be used in evaluation, too."""

    def get_train_dataloader(self):
        plain, self.data_collator = self.data_collator, mixing
        loader = super().get_train_dataloader()
        self.data_collator = plain
        return loader


size = {"image_size": 8, "patch_size": 4, "num_channels": 1, "hidden_size": 32, "intermediate_size": 32}
config = ViTConfig(**size, num_hidden_layers=1, num_attention_heads=2, num_labels=1, problem_type="regression")
arguments = TrainingArguments(
    output_dir="outputs/hugging_face", num_train_epochs=10, per_device_train_batch_size=32, learning_rate=0.003,
    report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, remove_unused_columns=False,
)  # fmt: skip
trainer = CMixupTrainer(ViTForImageClassification(config), arguments, train_dataset=rows[:160])
trainer.train()
rmse = trainer.evaluate(rows[160:])["eval_loss"] ** 0.5
of_mean = (labels[160:] - labels[:160].mean()).square().mean().sqrt()
print(f"test RMSE {rmse:.3f}, of the mean label {of_mean:.3f}")
