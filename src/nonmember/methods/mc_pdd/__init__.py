"""MC-PDD: multiple-choice questions about masked words."""
