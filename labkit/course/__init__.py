"""What goes between an instructor and students: a release of the book, work handed in, work collected."""
