"""Tables: what a quantity is called and how it is printed, and one writer per kind of output."""
