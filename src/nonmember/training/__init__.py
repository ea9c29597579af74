"""Training: recipes, the models they make, Lightning modules, exact resume."""

from nonmember.training.trained import Trained

__all__ = ["Trained"]
