"""Hugging Face with attention masks: texts of different lengths are mixed where their embeddings come out."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from cmixup import CMixup, mixing_at

torch.manual_seed(0)
used = (torch.arange(10) < torch.randint(4, 11, (400, 1))).long()
words = torch.randint(1, 30, (400, 10)) * used  # 0 is padding
labels = (words < 10).logical_and(used.bool()).sum(1) / used.sum(1)  # the share of words that matter
rows = [{"input_ids": w, "attention_mask": m, "labels": y} for w, m, y in zip(words, used, labels, strict=True)]
mixing = CMixup(bandwidth=("std", 0.3), alpha=2.0, seed=0, labels=labels[:320])


class CMixupTrainer(Trainer):
    """Mixes in `compute_loss`, which evaluation calls, too: in eval mode a mixing gives what it gets."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        mixing.train(model.training)
        y, mask = inputs.pop("labels"), inputs["attention_mask"]
        with mixing_at(model, "bert.embeddings", mixing, y, mask=mask) as (mixed_y, _):
            outputs = model(**inputs)  # it sees the mask of the mixed rows
        loss = torch.nn.functional.mse_loss(outputs.logits.squeeze(-1), mixed_y)
        return (loss, outputs) if return_outputs else loss


size = {"vocab_size": 30, "hidden_size": 32, "intermediate_size": 32, "max_position_embeddings": 10}
model = BertForSequenceClassification(BertConfig(**size, num_hidden_layers=1, num_attention_heads=2, num_labels=1))
arguments = TrainingArguments(
    output_dir="outputs/hugging_face", num_train_epochs=20, per_device_train_batch_size=32, learning_rate=0.003,
    report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True,
)  # fmt: skip
trainer = CMixupTrainer(model, arguments, train_dataset=rows[:320])
trainer.train()
rmse = trainer.evaluate(rows[320:])["eval_loss"] ** 0.5
print(f"test RMSE {rmse:.3f}, of the mean label {(labels[320:] - labels[:320].mean()).square().mean().sqrt():.3f}")
