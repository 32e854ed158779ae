"""Accuracy: questions with known answers, the answers of two servers, and whether the second is worse."""
