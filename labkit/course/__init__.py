"""The exchange between an instructor and students: a release of the book, submissions, collected work."""
