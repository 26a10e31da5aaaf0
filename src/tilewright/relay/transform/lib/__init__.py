"""What several graph-level passes share: rewriters, rules and analyses. The passes themselves are one folder up."""
