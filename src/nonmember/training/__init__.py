"""Training: recipes, the models they make, Lightning modules, exact resume."""

from nonmember.training.recipes import (
    AdaLora,
    AdapterTuning,
    Distillation,
    Ia3,
    Lora,
    Optimization,
    Pretraining,
    TrainingRecipe,
)
from nonmember.training.trained import Trained

__all__ = [
    "AdaLora",
    "AdapterTuning",
    "Distillation",
    "Ia3",
    "Lora",
    "Optimization",
    "Pretraining",
    "Trained",
    "TrainingRecipe",
]
