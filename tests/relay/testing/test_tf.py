"""Helpers of TensorFlow's tutorials. No TensorFlow is needed."""

from __future__ import annotations

from pathlib import Path

from tilewright.relay.testing.tf import NodeLookup


def test_words_for_classes(tmp_path: Path) -> None:
    """From a map of classes to synsets and one of synsets to words; an unknown class has no words."""
    labels, words = tmp_path / "labels.pbtxt", tmp_path / "words.txt"
    labels.write_text('# a comment\nentry {\n  target_class: 449\n  target_class_string: "n01440764"\n}\n')
    words.write_text("n00004475\torganism, being\nn01440764\ttench, Tinca tinca\n")
    lookup = NodeLookup(label_lookup_path=str(labels), uid_lookup_path=words)
    assert lookup.id_to_string(449) == "tench, Tinca tinca"
    assert lookup.id_to_string(1) == ""
