"""Reading a repository as text: files from a folder or a git commit, and an index of what they define."""
