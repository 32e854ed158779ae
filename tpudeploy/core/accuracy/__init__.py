"""Accuracy: questions with known answers, what two servers made of them, and whether one of them fell behind."""
