"""TensorBoard event files, read without TensorBoard: framing, messages, points, settings."""
